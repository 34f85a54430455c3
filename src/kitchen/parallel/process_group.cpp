#include "kitchen/parallel/process_group.h"

#include "kitchen/base/error.h"
#include "kitchen/base/rank_state.h"

#include <string>
#include <utility>

namespace kitchen {

namespace {

/// Default groups of a rank, in its RankState.
struct DefaultGroups {
  std::shared_ptr<const ProcessGroupCollection> collection;
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

}  // namespace

ProcessGroup::ProcessGroup(std::vector<int> ranks, int rank)
    : ranks_(std::move(ranks)), rank_(rank) {
  if (rank_ < 0 || rank_ >= size()) {
    throw ValueError("ProcessGroup: rank " + std::to_string(rank_) + " of a group of " +
                     std::to_string(size()) + " ranks");
  }
}

std::shared_ptr<ProcessGroup> ProcessGroup::self() {
  return std::make_shared<ProcessGroup>(std::vector<int>{current_rank_state().rank()}, 0);
}

void ProcessGroup::require_single_rank(const char* operation) const {
  if (size() == 1) return;
  throw NotImplementedError(std::string(operation) + " over a group of " + std::to_string(size()) +
                            " ranks: no communicator between ranks exists in this version; use one "
                            "rank");
}

std::shared_ptr<const ProcessGroupCollection> ProcessGroupCollection::use_mpu_process_groups() {
  auto& groups = current_rank_state().slot<DefaultGroups>();
  if (!groups.collection) groups.collection = single_rank_collection();
  return groups.collection;
}

std::shared_ptr<ProcessGroup> get_tensor_model_parallel_group_if_none(
    const std::shared_ptr<ProcessGroup>& group, bool is_expert) {
  if (group) return group;
  const auto groups = ProcessGroupCollection::use_mpu_process_groups();
  return is_expert ? groups->expt_tp : groups->tp;
}

std::int64_t divide(std::int64_t a, std::int64_t b) {
  if (b == 0 || a % b != 0) {
    throw AssertionError(std::to_string(a) + " is not divisible by " + std::to_string(b));
  }
  return a / b;
}

}  // namespace kitchen
