#pragma once

#include "kitchen/parallel/communicator.h"

namespace kitchen::parallel {

/// What the rank threads of one process share: the collectives under way and the first failure.
class ThreadWorld {
 public:
  explicit ThreadWorld(std::chrono::milliseconds deadline);
  ~ThreadWorld();
  ThreadWorld(const ThreadWorld&) = delete;
  ThreadWorld& operator=(const ThreadWorld&) = delete;

  /// Wakes every rank that waits; each then throws, naming `rank` and `cause`. The first failure
  /// counts.
  /// @returns true if the failure that counts is one of `rank`.
  bool fail(int rank, const std::string& cause);
  /// Rank `rank` has returned: whoever waits for it now waits in vain.
  void leave(int rank);

 private:
  friend class ThreadCommunicator;
  struct State;
  std::unique_ptr<State> state_;
};

/// Ranks as threads of one process, for tests, tutorials and the debugger.
///
/// start() copies what is sent and returns at once; wait() reads the copies of all ranks. The calls
/// of the ranks are compared each time.
class ThreadCommunicator : public Communicator {
 public:
  /// @param ranks global ranks of the members; @param rank this one's global number.
  ThreadCommunicator(std::shared_ptr<ThreadWorld> world, std::vector<int> ranks, int rank,
                     std::string name);

  [[nodiscard]] std::string backend() const override { return "threads"; }
  [[nodiscard]] const std::vector<int>& ranks() const override { return ranks_; }
  [[nodiscard]] int rank() const override { return rank_; }
  std::unique_ptr<Transfer> start(const CollectiveCall& call) override;
  std::shared_ptr<Communicator> split(const std::vector<int>& ranks,
                                      const std::string& name) override;

 private:
  class ThreadTransfer;
  struct Round;

  std::shared_ptr<ThreadWorld> world_;
  std::vector<int> ranks_;
  int rank_;
  std::string name_;

  friend class ThreadWorld;
};

}  // namespace kitchen::parallel
