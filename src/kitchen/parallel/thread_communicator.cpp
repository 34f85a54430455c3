#include "kitchen/parallel/thread_communicator.h"

#include "kitchen/base/error.h"
#include "kitchen/parallel/rank_order_reduction.h"

#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <utility>

namespace kitchen::parallel {

/// One collective of a group: what each rank has called and a copy of what it sends. Complete and
/// constant from the moment when the last rank has arrived.
struct ThreadCommunicator::Round {
  explicit Round(std::size_t size) : calls(size), data(size), here(size, false) {}

  std::vector<CollectiveCall> calls;
  std::vector<std::vector<std::uint8_t>> data;
  std::vector<bool> here;
  std::size_t arrived = 0;
};

struct ThreadWorld::State {
  /// The collectives of one set of ranks, numbered. A round leaves the map when it is complete.
  struct Group {
    std::vector<std::int64_t> started;
    std::map<std::int64_t, std::shared_ptr<ThreadCommunicator::Round>> open;
  };

  std::chrono::milliseconds deadline;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::vector<int>, Group> groups;
  std::set<int> left;
  std::string failure;
  int failed_rank = -1;
};

ThreadWorld::ThreadWorld(std::chrono::milliseconds deadline) : state_(std::make_unique<State>()) {
  state_->deadline = deadline;
}

ThreadWorld::~ThreadWorld() = default;

bool ThreadWorld::fail(int rank, const std::string& cause) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (state_->failure.empty()) {
    state_->failure = "rank " + std::to_string(rank) + " failed: " + cause;
    state_->failed_rank = rank;
    state_->changed.notify_all();
  }
  return state_->failed_rank == rank;
}

void ThreadWorld::leave(int rank) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->left.insert(rank);
  state_->changed.notify_all();
}

class ThreadCommunicator::ThreadTransfer : public Transfer {
 public:
  ThreadTransfer(std::shared_ptr<ThreadWorld> world, std::shared_ptr<Round> round,
                 std::vector<int> ranks, int rank, std::string subject)
      : world_(std::move(world)),
        round_(std::move(round)),
        ranks_(std::move(ranks)),
        rank_(static_cast<std::size_t>(rank)),
        subject_(std::move(subject)) {}

  void wait() override {
    wait_for_all();
    const std::string mismatch = describe_mismatch(round_->calls, ranks_);
    if (!mismatch.empty()) fail(mismatch);
    receive();
  }

 private:
  [[noreturn]] void fail(const std::string& cause) {
    world_->fail(ranks_[rank_], subject_ + ": " + cause);
    throw RuntimeError("rank " + std::to_string(ranks_[rank_]) + ": " + subject_ + ": " + cause);
  }

  /// Blocks until every rank has started this collective.
  void wait_for_all() {
    ThreadWorld::State& state = *world_->state_;
    const auto until = std::chrono::steady_clock::now() + state.deadline;
    std::string cause;
    {
      std::unique_lock<std::mutex> lock(state.mutex);
      const bool woken = state.changed.wait_until(lock, until, [&] {
        return round_->arrived == ranks_.size() || !state.failure.empty() || missing(state.left);
      });
      if (round_->arrived == ranks_.size()) return;
      if (!state.failure.empty()) {
        cause = state.failure;
      } else if (woken) {
        cause = "will never complete: " + absent() + " returned without taking part";
      } else {
        cause = "waited " + std::to_string(state.deadline.count()) + " ms for " + absent() +
                "; raise the deadline if that rank is only slow";
      }
    }
    fail(cause);
  }

  /// True if a rank that has not arrived never will.
  [[nodiscard]] bool missing(const std::set<int>& left) const {
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (!round_->here[i] && left.count(ranks_[i]) != 0) return true;
    }
    return false;
  }

  [[nodiscard]] std::string absent() const {
    std::string text;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (round_->here[i]) continue;
      text += (text.empty() ? "rank " : ", rank ") + std::to_string(ranks_[i]);
    }
    return text;
  }

  void receive() {
    const CollectiveCall& call = round_->calls[rank_];
    auto* out = static_cast<std::uint8_t*>(call.recv);
    const auto size = static_cast<std::size_t>(size_of(call.dtype));
    switch (call.kind) {
      case CollectiveKind::barrier:
        return;
      case CollectiveKind::all_reduce:
        return reduce(call, 0, call.counts[0]);
      case CollectiveKind::broadcast: {
        const std::vector<std::uint8_t>& source = round_->data[static_cast<std::size_t>(call.root)];
        if (!source.empty()) std::memcpy(out, source.data(), source.size());
        return;
      }
      case CollectiveKind::all_gather:
        for (const std::vector<std::uint8_t>& part : round_->data) {
          if (!part.empty()) std::memcpy(out, part.data(), part.size());
          out += part.size();
        }
        return;
      case CollectiveKind::reduce_scatter:
        return reduce(call, elements_before(call.counts, rank_), call.counts[rank_]);
      case CollectiveKind::all_to_all:
        for (std::size_t from = 0; from < ranks_.size(); ++from) {
          const auto first =
              static_cast<std::size_t>(elements_before(round_->calls[from].counts, rank_));
          const std::size_t bytes = static_cast<std::size_t>(call.recv_counts[from]) * size;
          if (bytes > 0) std::memcpy(out, round_->data[from].data() + first * size, bytes);
          out += bytes;
        }
        return;
    }
  }

  static std::int64_t elements_before(const std::vector<std::int64_t>& counts, std::size_t rank) {
    return std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(rank),
                           std::int64_t{0});
  }

  void reduce(const CollectiveCall& call, std::int64_t first, std::int64_t count) {
    std::vector<const void*> inputs;
    for (const std::vector<std::uint8_t>& part : round_->data) {
      inputs.push_back(part.data() + first * size_of(call.dtype));
    }
    reduce_in_rank_order(call.dtype, call.reduce, inputs, call.recv, count);
  }

  std::shared_ptr<ThreadWorld> world_;
  std::shared_ptr<Round> round_;
  std::vector<int> ranks_;
  std::size_t rank_;
  std::string subject_;
};

ThreadCommunicator::ThreadCommunicator(std::shared_ptr<ThreadWorld> world, std::vector<int> ranks,
                                       int rank, std::string name)
    : world_(std::move(world)),
      ranks_(std::move(ranks)),
      rank_(index_of_rank(ranks_, rank)),
      name_(std::move(name)) {}

std::unique_ptr<Transfer> ThreadCommunicator::start(const CollectiveCall& call) {
  const auto self = static_cast<std::size_t>(rank_);
  const auto bytes = static_cast<std::size_t>(elements_sent(call, rank_) * size_of(call.dtype));
  std::vector<std::uint8_t> copy(bytes);
  if (bytes > 0) std::memcpy(copy.data(), call.send, bytes);
  ThreadWorld::State& state = *world_->state_;
  const std::lock_guard<std::mutex> lock(state.mutex);
  ThreadWorld::State::Group& group = state.groups[ranks_];
  group.started.resize(ranks_.size());
  const std::int64_t number = group.started[self]++;
  std::shared_ptr<Round>& entry = group.open[number];
  if (!entry) entry = std::make_shared<Round>(ranks_.size());
  const std::shared_ptr<Round> round = entry;
  round->calls[self] = call;
  round->data[self] = std::move(copy);
  round->here[self] = true;
  if (++round->arrived == ranks_.size()) {
    group.open.erase(number);
    state.changed.notify_all();
  }
  return std::make_unique<ThreadTransfer>(world_, round, ranks_, rank_,
                                          to_string(call) + " over " +
                                              describe_group(name_, ranks_) + ", its collective " +
                                              std::to_string(number));
}

std::shared_ptr<Communicator> ThreadCommunicator::split(const std::vector<int>& ranks,
                                                        const std::string& name) {
  return std::make_shared<ThreadCommunicator>(world_, ranks,
                                              ranks_[static_cast<std::size_t>(rank_)], name);
}

}  // namespace kitchen::parallel
