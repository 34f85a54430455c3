#include "kitchen/parallel/process_group_collection.h"

#include "kitchen/base/error.h"
#include "kitchen/base/rank_state.h"

#include <utility>

namespace kitchen {

namespace {

/// Default groups of a rank, in its RankState.
struct DefaultGroups {
  std::shared_ptr<const ProcessGroupCollection> collection;
  bool initialized = false;
};

std::shared_ptr<const ProcessGroupCollection> single_rank_collection() {
  const std::shared_ptr<ProcessGroup> self = ProcessGroup::self();
  auto groups = std::make_shared<ProcessGroupCollection>();
  for (std::shared_ptr<ProcessGroup>* group :
       {&groups->tp, &groups->pp, &groups->dp, &groups->cp, &groups->tp_cp, &groups->dp_cp,
        &groups->tp_dp_cp, &groups->ep, &groups->expt_tp, &groups->tp_ep, &groups->expt_dp}) {
    *group = self;
  }
  return groups;
}

/// This rank's default groups, which nothing has set so far.
DefaultGroups& unset_defaults(const char* function) {
  auto& defaults = current_rank_state().slot<DefaultGroups>();
  if (!defaults.initialized) return defaults;
  throw RuntimeError(std::string(function) + ": the groups of rank " +
                     std::to_string(current_rank_state().rank()) +
                     " are initialised already; call destroy_model_parallel first");
}

/// Members call this alike and in the same order, since a split is a collective of its members.
std::shared_ptr<ProcessGroup> part_of(const ProcessGroup& world, const std::vector<int>& ranks,
                                      const std::string& name) {
  if (ranks.size() == 1) return std::make_shared<ProcessGroup>(ranks, 0, name);
  return std::make_shared<ProcessGroup>(world.communicator()->split(ranks, name), name);
}

}  // namespace

std::shared_ptr<const ProcessGroupCollection> ProcessGroupCollection::use_mpu_process_groups() {
  auto& groups = current_rank_state().slot<DefaultGroups>();
  if (!groups.collection) groups.collection = single_rank_collection();
  return groups.collection;
}

void initialize_model_parallel(const ParallelSizes& sizes) {
  DefaultGroups& defaults = unset_defaults("initialize_model_parallel");
  const std::shared_ptr<ProcessGroup> world = world_group();
  const RankGrid grid(world->size(), sizes);
  const int rank = world->rank();
  auto groups = std::make_shared<ProcessGroupCollection>();
  groups->tp = part_of(*world, grid.tp(rank), "tp");
  groups->dp = part_of(*world, grid.dp(rank), "dp");
  groups->expt_tp = part_of(*world, grid.expt_tp(rank), "expt_tp");
  groups->ep = part_of(*world, grid.ep(rank), "ep");
  groups->tp_ep = part_of(*world, grid.tp_ep(rank), "tp_ep");
  groups->expt_dp = part_of(*world, grid.expt_dp(rank), "expt_dp");
  groups->tp_dp_cp = part_of(*world, grid.world(), "tp_dp_cp");
  // Pipeline and context parallel sizes are 1, so these sets of ranks are known already.
  groups->pp = std::make_shared<ProcessGroup>(std::vector<int>{rank}, 0, "pp");
  groups->cp = std::make_shared<ProcessGroup>(std::vector<int>{rank}, 0, "cp");
  groups->tp_cp = groups->tp;
  groups->dp_cp = groups->dp;
  defaults.collection = std::move(groups);
  defaults.initialized = true;
}

void adopt_model_parallel(std::shared_ptr<const ProcessGroupCollection> groups) {
  unset_defaults("adopt_model_parallel") = {std::move(groups), true};
}

void destroy_model_parallel() {
  current_rank_state().slot<DefaultGroups>() = {};
}

std::shared_ptr<ProcessGroup> get_tensor_model_parallel_group_if_none(
    const std::shared_ptr<ProcessGroup>& group, bool is_expert) {
  if (group) return group;
  const auto groups = ProcessGroupCollection::use_mpu_process_groups();
  return is_expert ? groups->expt_tp : groups->tp;
}

}  // namespace kitchen
