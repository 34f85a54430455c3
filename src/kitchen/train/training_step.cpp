#include "kitchen/train/training_step.h"

#include "kitchen/autograd/backward.h"
#include "kitchen/autograd/math_functions.h"
#include "kitchen/base/logger.h"
#include "kitchen/modules/linear.h"
#include "kitchen/ops/cross_entropy.h"
#include "kitchen/ops/elementwise.h"

#include <algorithm>

namespace kitchen::train {

std::int64_t count_tokens(const Tensor& labels) {
  if (labels.context()->is_meta()) return labels.numel();
  const std::vector<std::int64_t> values = labels.to_vector<std::int64_t>();
  return static_cast<std::int64_t>(
      values.size() -
      static_cast<std::size_t>(std::count(values.begin(), values.end(), ops::kIgnoredLabel)));
}

Tensor position_ids_like(const Tensor& input_ids) {
  const std::int64_t batch = input_ids.dim(0);
  const std::int64_t seq = input_ids.dim(1);
  std::vector<std::int64_t> row(static_cast<std::size_t>(batch * seq));
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<std::int64_t>(i) % seq;
  return Tensor::from_vector(input_ids.context(), {batch, seq}, row);
}

TrainingStep::TrainingStep(GPTModel& model, Optimizer& optimizer)
    : model_(model), optimizer_(optimizer) {}

StepResult TrainingStep::run(const std::vector<Batch>& micro_batches, double lr, std::int64_t step,
                             std::optional<std::int64_t> update) {
  StepResult result;
  for (const Batch& batch : micro_batches) result.num_tokens += count_tokens(batch.labels);
  if (result.num_tokens == 0) {
    logger().warning("step " + std::to_string(step) +
                     ": no label of the batch counts (all are -100); the loss is 0");
  }
  const float weight =
      result.num_tokens > 0 ? 1.0f / static_cast<float>(result.num_tokens) : 0.0f;
  optimizer_.zero_grad();
  for (const Batch& batch : micro_batches) {
    const Tensor losses =
        model_.forward(batch.inputs, position_ids_like(batch.inputs), std::nullopt, batch.labels);
    const Tensor sum = autograd::sum(losses);
    if (result.loss_sum.defined()) {
      ops::add_inplace(result.loss_sum, sum.detach());
    } else {
      result.loss_sum = ops::scale(sum.detach(), 1.0f);
    }
    autograd::backward(autograd::scale(sum, weight));
  }
  if (before_update) before_update(step);
  result.clip = optimizer_.step(lr, update.value_or(step));
  modules::finish_quantization_step(model_);
  model_.set_is_first_microbatch();
  return result;
}

Tensor evaluate_loss_sum(GPTModel& model, const Batch& batch) {
  const autograd::NoGradGuard guard;
  return autograd::sum(
      model.forward(batch.inputs, position_ids_like(batch.inputs), std::nullopt, batch.labels));
}

}  // namespace kitchen::train
