#include "kitchen/train/memory_plan.h"

#include "kitchen/base/rank_state.h"
#include "kitchen/parallel/process_group_collection.h"
#include "kitchen/parallel/rng_tracker.h"
#include "kitchen/train/batch_sizes.h"
#include "kitchen/train/model_factory.h"
#include "kitchen/train/training_step.h"

#include <fmt/format.h>

namespace kitchen::train {

MemoryPlan plan_memory(const TrainSettings& settings, const ContextPtr& device_context) {
  // A rank state of its own: the dry run must not advance generators or creation counters of the real one.
  const auto groups = ProcessGroupCollection::use_mpu_process_groups();
  const RankState& outer = current_rank_state();
  const auto rank = std::make_shared<RankState>(outer.rank(), outer.world_size());
  rank->set_logs(false);
  const RankScope scope(rank);
  adopt_model_parallel(groups);
  const ContextPtr meta = make_meta_context(*device_context);
  set_default_context(meta);
  model_parallel_cuda_manual_seed(static_cast<std::uint64_t>(settings.seed));

  const auto live = [&] { return meta->allocator()->stats().live_bytes; };
  MemoryPlan plan;
  const std::shared_ptr<GPTModel> model = make_model(settings, make_transformer_config(settings));
  plan.parameters = live();
  Optimizer optimizer(*model, {});
  plan.gradients = 4 * optimizer.num_parameters();
  plan.optimizer = live() - plan.parameters - plan.gradients;

  const Shape shape{settings.micro_batch_size, settings.seq_length};
  std::vector<Batch> batches;
  const std::int64_t count =
      num_micro_batches(settings.global_batch_size, settings.micro_batch_size, groups->dp->size());
  for (std::int64_t i = 0; i < count; ++i) {
    batches.push_back(
        {Tensor::empty(meta, shape, DType::int64), Tensor::empty(meta, shape, DType::int64)});
  }
  TrainingStep step(*model, optimizer);
  // Twice: caches of quantized weights are filled in the first step and replaced in the second.
  for (std::int64_t i = 1; i <= 2; ++i) (void)step.run(batches, settings.lr, i);
  plan.peak = meta->allocator()->stats().peak_bytes;
  return plan;
}

std::string format_mebibytes(std::int64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1024.0 * 1024.0));
}

std::string to_string(const MemoryPlan& plan) {
  return fmt::format("planned {}: parameters {}, gradients {}, optimizer {}, activations {}",
                     format_mebibytes(plan.peak), format_mebibytes(plan.parameters),
                     format_mebibytes(plan.gradients), format_mebibytes(plan.optimizer),
                     format_mebibytes(plan.activations()));
}

}  // namespace kitchen::train
