#pragma once

#include "kitchen/parallel/process_group.h"
#include "kitchen/parallel/rank_grid.h"

#include <memory>

namespace kitchen {

/// The groups that a model needs, by Megatron's names; null where a group is not given.
struct ProcessGroupCollection {
  std::shared_ptr<ProcessGroup> tp;
  std::shared_ptr<ProcessGroup> pp;
  std::shared_ptr<ProcessGroup> dp;
  std::shared_ptr<ProcessGroup> cp;
  std::shared_ptr<ProcessGroup> tp_cp;
  std::shared_ptr<ProcessGroup> dp_cp;
  std::shared_ptr<ProcessGroup> tp_dp_cp;
  std::shared_ptr<ProcessGroup> ep;
  std::shared_ptr<ProcessGroup> expt_tp;
  std::shared_ptr<ProcessGroup> tp_ep;
  std::shared_ptr<ProcessGroup> expt_dp;

  /// The default groups of this rank; each is the self group where nothing was initialised.
  static std::shared_ptr<const ProcessGroupCollection> use_mpu_process_groups();
};

/// Splits this rank's world into the groups of a RankGrid and makes them its default groups. Every
/// rank of the world calls it with the same sizes.
/// @throws as RankGrid; RuntimeError if the default groups were initialised already.
void initialize_model_parallel(const ParallelSizes& sizes);

/// Makes `groups`, those of another RankState, the default ones of this rank: for a dry run beside
/// the real one.
/// @throws RuntimeError if the default groups were initialised already.
void adopt_model_parallel(std::shared_ptr<const ProcessGroupCollection> groups);

/// Forgets the default groups of this rank.
void destroy_model_parallel();

/// `group` if given, else this rank's default tensor-parallel group (the expert one if
/// `is_expert`).
std::shared_ptr<ProcessGroup> get_tensor_model_parallel_group_if_none(
    const std::shared_ptr<ProcessGroup>& group, bool is_expert);

}  // namespace kitchen
