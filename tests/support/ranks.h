#pragma once

#include "kitchen/base/rank_state.h"
#include "kitchen/parallel/process_group_collection.h"
#include "kitchen/parallel/rng_tracker.h"
#include "kitchen/parallel/run_ranks.h"
#include "support/values.h"

#include <functional>

/// @file  ranks.h
/// @brief Tests over several ranks, as threads.

namespace kitchen::testing {

/// Runs body(rank) on `num_ranks` rank threads that form one tensor-parallel group. Each has a
/// poisoned context and the seed of RankTest. A collective that hangs ends after `deadline`.
inline void on_ranks(int num_ranks, const std::function<void(int rank)>& body,
                     std::chrono::milliseconds deadline = std::chrono::seconds(20)) {
  parallel::RunRanksOptions options;
  options.deadline = deadline;
  options.make_context = [](int) { return poisoned_context(); };
  parallel::run_ranks(
      num_ranks,
      [&] {
        ParallelSizes sizes;
        sizes.tensor = num_ranks;
        initialize_model_parallel(sizes);
        model_parallel_cuda_manual_seed(1234);
        body(current_rank_state().rank());
      },
      options);
}

/// This rank's default tensor-parallel group.
inline std::shared_ptr<ProcessGroup> tp_group() {
  return ProcessGroupCollection::use_mpu_process_groups()->tp;
}

}  // namespace kitchen::testing
