#include "kitchen/train/training_step.h"

#include "kitchen/autograd/backward.h"
#include "kitchen/autograd/math_functions.h"
#include "kitchen/base/logger.h"
#include "kitchen/modules/linear.h"
#include "kitchen/ops/cross_entropy.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/train/finalize_model_grads.h"

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

namespace {

/// Σ of `count` over the ranks of `group`. Reads it on the host; on the meta device all ranks are alike.
std::int64_t sum_over_ranks(const ProcessGroup& group, const ContextPtr& context,
                            std::int64_t count) {
  if (group.size() == 1) return count;
  if (context->is_meta()) return count * group.size();
  const Tensor own = Tensor::from_vector(context, {1}, std::vector<std::int64_t>{count});
  return group.all_reduce(own).to_vector<std::int64_t>().at(0);
}

}  // namespace

TrainingStep::TrainingStep(GPTModel& model, Optimizer& optimizer)
    : model_(model), optimizer_(optimizer) {}

StepResult TrainingStep::run(const std::vector<Batch>& micro_batches, double lr, std::int64_t step,
                             std::optional<std::int64_t> update) {
  StepResult result;
  const ProcessGroupCollection& groups = *model_.options().pg_collection;
  std::int64_t own_tokens = 0;
  for (const Batch& batch : micro_batches) own_tokens += count_tokens(batch.labels);
  result.num_tokens =
      sum_over_ranks(*groups.dp, micro_batches.at(0).labels.context(), own_tokens);
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
  result.loss_sum = groups.dp->all_reduce(result.loss_sum);
  finalize_model_grads(model_, groups);
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
