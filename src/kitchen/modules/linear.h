#pragma once

#include "kitchen/base/device.h"
#include "kitchen/base/init_method.h"
#include "kitchen/modules/linear_function.h"
#include "kitchen/modules/module.h"
#include "kitchen/parallel/process_group.h"
#include "kitchen/parallel/rng_tracker.h"

#include <optional>
#include <string>
#include <utility>

namespace kitchen::modules {

/// y and, if the caller adds it later, the bias.
using LinearOutput = std::pair<Tensor, std::optional<Tensor>>;

/// Arguments of the deferred constructor of Linear. Feature sizes are global.
struct LinearOptions {
  std::int64_t in_features = 0;
  std::int64_t out_features = 0;
  bool sequence_parallel = false;
  bool fuse_wgrad_accumulation = false;
  std::shared_ptr<ProcessGroup> tp_group;  ///< null: this rank alone
  int tp_size = 1;
  RngTracker* rng_tracker = nullptr;              ///< null: init draws from the default generator
  std::optional<std::string> rng_tracker_name;    ///< nullopt: the tracker's default state
  InitMethod init_method;                         ///< null: zeros
  bool bias = true;
  bool return_bias = false;
  std::optional<std::string> parallel_mode;       ///< "column", "row" or nullopt
  DType params_dtype = DType::float32;
  Device device;
  std::shared_ptr<const QLinearParams> qlinear_params;  ///< null: recipe 1
  std::optional<std::string> ub_name;             ///< recorded only
  std::optional<std::int64_t> layer_number;
  std::string logical_name;                       ///< module path; names the parameters on every rank
  std::int64_t partition_stride = 1;
  /// Where the layout over ranks is not the communication's: a layer whose sizes its caller has divided already
  /// ("column", "row"), or a replica in another group. nullopt and null: as parallel_mode and tp_group say.
  std::optional<std::string> shard_mode;
  std::shared_ptr<ProcessGroup> shard_group;
  bool allocate_weight = true;  ///< false: each forward_with brings the weight (tied embeddings)
};

/// A layer whose quantizers remember from step to step.
class HasQuantizationSteps {
 public:
  virtual ~HasQuantizationSteps() = default;
  /// The end of a training step: delayed scales follow from the histories.
  virtual void finish_quantization_step() = 0;
};

/// Base of all linear layers: holds the parameters, runs LinearFunction.
///
/// Two-phase: `init` allocates, so that a wrapper can learn its recipe first. The weight is
/// [out_features, in_features], local sizes: column mode divides out_features, row mode in_features.
class Linear : public Module, public HasQuantizationSteps {
 public:
  Linear();

  Parameter weight;  ///< [out_features, in_features]
  Parameter bias;    ///< [out_features]; undefined without bias
  std::int64_t in_features = 0;
  std::int64_t out_features = 0;
  bool use_bias = false;
  int tp_size = 1;
  std::optional<std::string> parallel_mode;
  std::optional<std::string> ub_name;

  /// Allocates no parameter if it throws.
  /// @throws AssertionError "is not divisible by" if the group's size does not divide the split dimension.
  void init(const LinearOptions& options);

  /// @param x [..., in_features]; leading dimensions are tokens and may be empty.
  /// @param is_first_microbatch true: quantize the weight and keep it; false: use what was kept;
  ///        nullopt: quantize it each time.
  /// Collectives in column and row mode: LinearSplit.
  /// @throws ValueError if x's last size is not in_features.
  LinearOutput forward(const Tensor& x, std::optional<bool> is_first_microbatch);

  /// As forward with another module's weight [out_features, in_features] in place of this one's.
  LinearOutput forward_with(const Tensor& x, const Tensor& shared_weight,
                            std::optional<bool> is_first_microbatch);

  /// Late assignment of the group, before the first forward.
  /// @throws ValueError if its size is not tp_size, or after a forward.
  void set_tensor_parallel_group(std::shared_ptr<ProcessGroup> group);

  /// Initialises the parameters again; gives storage to parameters on the meta device. Handles and attributes
  /// of the parameters stay.
  void reset_parameters();

  /// What the quantizers remember, as a uint8 tensor. Empty under a recipe that remembers nothing, and kept
  /// all the same so that key sets match the fused layout.
  [[nodiscard]] Tensor get_extra_state() const;
  /// Puts a state back. An empty or null one changes nothing; one that comes from another recipe is logged
  /// and ignored if this layer's recipe remembers nothing.
  /// @throws RuntimeError "Unsupported checkpoint format" naming what was found, if it does.
  void set_extra_state(const Tensor& state);

  /// The end of a training step: delayed scales follow from the histories, whose newest entry is the
  /// largest over all tensor- and data-parallel ranks, so that scales do not depend on the split.
  void finish_quantization_step() override;

  /// What the next forward tells its Function; the group is fixed from then on.
  LinearCall begin_forward(std::optional<bool> is_first_microbatch);
  /// The rank-sharing group of the parameters.
  [[nodiscard]] std::shared_ptr<ProcessGroup> sharding_group() const override;
  [[nodiscard]] const LinearQuantizers& quantizers() const { return *quantizers_; }

  [[nodiscard]] const LinearOptions& options() const { return options_; }
  [[nodiscard]] std::string class_name() const override { return "Linear"; }

 protected:
  [[nodiscard]] std::vector<StateDict::Item> extra_state() const override;
  void load_extra_state(const std::string& name, const Tensor& value) override;
  [[nodiscard]] std::string extra_state_mismatch(const Tensor& value) const override;
  /// Allocates parameters of a subclass beside weight and bias (norm weights).
  virtual void allocate_parameters(const ContextPtr& context);

 private:
  void allocate(const ContextPtr& context);
  [[nodiscard]] LinearSplit split_over_ranks() const;

  LinearOptions options_;
  std::shared_ptr<LinearQuantizers> quantizers_ = std::make_shared<LinearQuantizers>();
  std::shared_ptr<WeightCache> cache_;
  bool forward_was_run_ = false;
};

/// Ends a training step for every quantized layer of `model`, after its weights were updated. Every
/// rank calls it.
void finish_quantization_step(const Module& model);

/// The context for parameters on `device`: this rank's default one, or its meta twin.
/// @throws ValueError if the default context lies on another device.
ContextPtr context_for(const Device& device);

}  // namespace kitchen::modules
