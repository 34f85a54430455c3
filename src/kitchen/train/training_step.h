#pragma once

#include "kitchen/models/gpt_model.h"
#include "kitchen/train/batch_sampler.h"
#include "kitchen/train/optimizer.h"

#include <functional>
#include <optional>
#include <vector>

namespace kitchen::train {

/// Number of labels that count, i.e. are not -100. Reads the labels on the host.
std::int64_t count_tokens(const Tensor& labels);

/// What one optimizer step left behind, on the device: nothing waits for it.
struct StepResult {
  Tensor loss_sum;          ///< float32 [1]: sum of the token losses of the global batch, nats
  std::int64_t num_tokens = 0;  ///< tokens of the global batch that count
  ops::ClipScale clip;
};

/// Forward and backward of all micro-batches, the sums over ranks, then the update, then the scales of the next step where a
/// recipe takes them from a history. The history gets its entry even if the update is skipped: the amax
/// was seen (numerics.md S3.2; an Inf leaves the scale as it is).
///
/// The loss is the mean over all tokens that count in the global batch, so that neither the number of
/// micro-batches and data-parallel ranks nor an uneven mask changes the gradient.
class TrainingStep {
 public:
  TrainingStep(GPTModel& model, Optimizer& optimizer);

  /// Works on the meta device too, where it plans the step's memory.
  /// Every rank calls it, with its own share of the global batch.
  /// @param step   counted from 1, for messages and the hook.
  /// @param update the optimizer's count of updates, this one included: `step` unless steps were skipped.
  StepResult run(const std::vector<Batch>& micro_batches, double lr, std::int64_t step,
                 std::optional<std::int64_t> update = std::nullopt);

  /// Called after backward, before the update: tests change gradients here.
  std::function<void(std::int64_t step)> before_update;

 private:
  GPTModel& model_;
  Optimizer& optimizer_;
};

/// Token losses of a batch without recording: sum as float32 [1].
Tensor evaluate_loss_sum(GPTModel& model, const Batch& batch);

/// position_ids [b, s]: 0, 1, ... in each row.
Tensor position_ids_like(const Tensor& input_ids);

}  // namespace kitchen::train
