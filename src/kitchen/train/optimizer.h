#pragma once

#include "kitchen/modules/module.h"
#include "kitchen/ops/optimizer.h"
#include "kitchen/train/checkpoint.h"

#include <memory>
#include <string>
#include <vector>

namespace kitchen::train {

/// AdamW with float32 main weights over the parameters of a model.
///
/// Each parameter gets a float32 main_grad, into which backward accumulates. A parameter that is not float32
/// gets a float32 main weight, and is that weight rounded. Weight decay acts on matrices only.
class Optimizer {
 public:
  struct Options {
    double beta1 = 0.9;
    double beta2 = 0.95;
    double eps = 1e-8;
    double weight_decay = 0.1;
    double clip_grad = 1.0;  ///< 0: no clipping
  };

  /// Norms are taken over the default tensor-parallel group of this rank.
  Optimizer(Module& model, const Options& options);

  /// Sets all main_grad to 0 for the next step.
  void zero_grad();

  /// Clips by the norm of the whole model, where a replicated parameter counts once, and updates all
  /// weights. If the norm is not finite nothing changes.
  /// @param step counts the updates from 1, without skipped ones. @returns the norm before clipping, and the factor; on the device.
  ops::ClipScale step(double lr, std::int64_t step);

  /// Main weights (where they differ from the model's) and moments, named after the parameters.
  [[nodiscard]] std::vector<NamedTensor> state() const;
  [[nodiscard]] std::vector<NamedTensor> parameters() const;
  /// Of this rank.
  [[nodiscard]] std::int64_t num_parameters() const;
  /// Tells caches that the weights have changed (after a load).
  void mark_updated();

 private:
  /// Σ gradient² of the whole model, float32 [1].
  [[nodiscard]] Tensor sum_of_squares() const;

  struct Entry {
    std::string name;
    Parameter* parameter = nullptr;
    Tensor main;  ///< the parameter itself if it is float32
    Tensor exp_avg;
    Tensor exp_avg_sq;
    Tensor main_grad;
    bool decays = false;
  };

  Options options_;
  std::vector<Entry> entries_;
  std::shared_ptr<ProcessGroup> tp_group_;
};

}  // namespace kitchen::train
