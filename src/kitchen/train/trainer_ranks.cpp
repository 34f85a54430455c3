#include "kitchen/train/batch_sizes.h"
#include "kitchen/train/trainer.h"

/// @file  trainer_ranks.cpp
/// @brief What the ranks of a training share and agree on.

namespace kitchen::train {

std::vector<Batch> Trainer::next_batches() const {
  std::vector<Batch> batches;
  const std::int64_t count = num_micro_batches(settings_.global_batch_size,
                                               settings_.micro_batch_size, groups_->dp->size());
  for (std::int64_t i = 0; i < count; ++i) {
    batches.push_back(
        sampler_->batch(context_, state_.consumed_samples,
                        {settings_.micro_batch_size, i, groups_->dp->rank(), groups_->dp->size()}));
  }
  return batches;
}

StopRequest Trainer::agreed_stop_request() const {
  if (is_alone()) return stop_request();
  // Ranks may look at the flag on either side of a signal, and must end at the same step.
  const auto own = static_cast<std::int32_t>(stop_request());
  const Tensor flag = Tensor::from_vector(context_, {1}, std::vector<std::int32_t>{own});
  return static_cast<StopRequest>(
      groups_->tp_dp_cp->broadcast(flag, 0).to_vector<std::int32_t>().at(0));
}

}  // namespace kitchen::train
