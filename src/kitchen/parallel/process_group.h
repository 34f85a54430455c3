#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace kitchen {

/// An ordered set of ranks that hold parts of one tensor or replicas of it.
///
/// A group knows its layout. Moving data between ranks needs a communicator; a group of one rank needs none,
/// since each of its collectives is the identity.
class ProcessGroup {
 public:
  /// @param ranks global ranks of the members, in group order, at least one.
  /// @param rank this process's index in `ranks`.
  /// @throws ValueError if `ranks` is empty or `rank` is outside of it.
  ProcessGroup(std::vector<int> ranks, int rank);

  /// The group of this rank alone: what a process has that initialised no process group.
  static std::shared_ptr<ProcessGroup> self();

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] const std::vector<int>& ranks() const { return ranks_; }

  /// @throws NotImplementedError naming `operation` if the group has more than one rank: there is no
  ///         communicator for it.
  void require_single_rank(const char* operation) const;

 private:
  std::vector<int> ranks_;
  int rank_;
};

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

/// `group` if given, else this rank's default tensor-parallel group (the expert one if `is_expert`).
std::shared_ptr<ProcessGroup> get_tensor_model_parallel_group_if_none(
    const std::shared_ptr<ProcessGroup>& group, bool is_expert);

/// a / b. @throws AssertionError "<a> is not divisible by <b>".
std::int64_t divide(std::int64_t a, std::int64_t b);

}  // namespace kitchen
