#include "kitchen/parallel/mpi_communicator.h"

#include "kitchen/base/error.h"
#include "kitchen/base/rank_state.h"
#include "kitchen/parallel/mpi_message.h"
#include "kitchen/parallel/process_group.h"
#include "kitchen/parallel/rank_order_reduction.h"

#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <thread>
#include <utility>

/// Throws a RuntimeError with the call and MPI's text if `call` fails.
#define KITCHEN_MPI_CHECK(call) ::kitchen::parallel::require_mpi_success((call), #call)

namespace kitchen::parallel {

namespace {

void require_mpi_success(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw RuntimeError(std::string(call) + ": " + text);
}

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator(MPI_Comm comm, std::vector<int> ranks, int rank, std::string name,
                  std::chrono::milliseconds deadline)
      : comm_(comm),
        ranks_(std::move(ranks)),
        rank_(rank),
        name_(std::move(name)),
        deadline_(deadline) {
    KITCHEN_MPI_CHECK(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
  }

  [[nodiscard]] std::string backend() const override { return "mpi"; }
  [[nodiscard]] const std::vector<int>& ranks() const override { return ranks_; }
  [[nodiscard]] int rank() const override { return rank_; }

  std::unique_ptr<Transfer> start(const CollectiveCall& call) override {
    auto pending = std::make_shared<Pending>();
    pending->call = call;
    pending->own_words = encode_call(call, ranks_.size());
    pending->all_words.resize(pending->own_words.size() * ranks_.size());
    pending->number = started_++;
    const int length = static_cast<int>(pending->own_words.size());
    KITCHEN_MPI_CHECK(MPI_Iallgather(pending->own_words.data(), length, MPI_INT64_T,
                                     pending->all_words.data(), length, MPI_INT64_T, comm_,
                                     &pending->calls_known));
    queue_.push_back(pending);
    return std::make_unique<MpiTransfer>(*this, pending);
  }

  std::shared_ptr<Communicator> split(const std::vector<int>& ranks,
                                      const std::string& name) override {
    std::vector<int> members;
    for (const int rank : ranks) members.push_back(index_of_rank(ranks_, rank));
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Group part = MPI_GROUP_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    KITCHEN_MPI_CHECK(MPI_Comm_group(comm_, &all));
    KITCHEN_MPI_CHECK(MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &part));
    KITCHEN_MPI_CHECK(MPI_Comm_create_group(comm_, part, 0, &comm));
    KITCHEN_MPI_CHECK(MPI_Group_free(&part));
    KITCHEN_MPI_CHECK(MPI_Group_free(&all));
    const int own = index_of_rank(ranks, ranks_[static_cast<std::size_t>(rank_)]);
    return std::make_shared<MpiCommunicator>(comm, ranks, own, name, deadline_);
  }

 private:
  /// A collective that was started: the comparison of the calls is under way, its data has not
  /// moved yet.
  struct Pending {
    CollectiveCall call;
    std::vector<std::int64_t> own_words;
    std::vector<std::int64_t> all_words;
    MPI_Request calls_known = MPI_REQUEST_NULL;
    std::int64_t number = 0;
    bool done = false;
    bool dropped = false;  ///< its memory may be gone
  };

  class MpiTransfer : public Transfer {
   public:
    MpiTransfer(MpiCommunicator& owner, std::shared_ptr<Pending> pending)
        : owner_(owner), pending_(std::move(pending)) {}
    ~MpiTransfer() override { pending_->dropped = !pending_->done; }
    MpiTransfer(const MpiTransfer&) = delete;
    MpiTransfer& operator=(const MpiTransfer&) = delete;

    /// Data moves in the order of the starts on every rank, whatever the order of the waits.
    void wait() override {
      while (!pending_->done) {
        const std::shared_ptr<Pending> first = owner_.queue_.front();
        owner_.complete(*first);
        first->done = true;
        owner_.queue_.pop_front();
      }
    }

   private:
    MpiCommunicator& owner_;
    std::shared_ptr<Pending> pending_;
  };

  [[noreturn]] void fail(const Pending& pending, const std::string& cause) const {
    throw RuntimeError("rank " + std::to_string(ranks_[static_cast<std::size_t>(rank_)]) + ": " +
                       to_string(pending.call) + " over " + describe_group(name_, ranks_) +
                       ", its collective " + std::to_string(pending.number) + ": " + cause);
  }

  /// Polls instead of blocking: MPI may never notice that a peer is gone.
  void await(MPI_Request& request, const Pending& pending) const {
    const auto until = std::chrono::steady_clock::now() + deadline_;
    for (int polls = 0;; ++polls) {
      int done = 0;
      KITCHEN_MPI_CHECK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
      if (done != 0) return;
      if (std::chrono::steady_clock::now() > until) {
        fail(pending,
             "waited " + std::to_string(deadline_.count()) +
                 " ms for the other ranks; one has ended or is late, raise the deadline if it is "
                 "only slow");
      }
      // A peer may need this core to get here at all.
      if (polls < 1000) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    }
  }

  void complete(Pending& pending) const {
    if (pending.dropped) fail(pending, "was dropped without wait()");
    await(pending.calls_known, pending);
    const std::size_t words = pending.own_words.size();
    std::vector<CollectiveCall> calls;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      calls.push_back(decode_call(pending.all_words.data() + i * words, ranks_.size()));
    }
    const std::string mismatch = describe_mismatch(calls, ranks_);
    if (!mismatch.empty()) fail(pending, mismatch);
    move(pending);
  }

  void move(const Pending& pending) const {
    const CollectiveCall& call = pending.call;
    switch (call.kind) {
      case CollectiveKind::barrier:
        return;
      case CollectiveKind::all_gather:
        return gather(pending, call.send, call.counts, call.recv);
      case CollectiveKind::all_to_all:
        return exchange(pending, ByteParts(call.counts, call.dtype),
                        ByteParts(call.recv_counts, call.dtype), call.recv);
      case CollectiveKind::reduce_scatter:
        return reduce_parts(pending, call.counts, call.recv);
      case CollectiveKind::all_reduce: {
        // Each rank reduces its share in rank order: MPI's own reductions promise no order.
        const auto shares = even_parts(call.counts[0], ranks_.size());
        std::vector<std::uint8_t> share(static_cast<std::size_t>(
            shares[static_cast<std::size_t>(rank_)] * size_of(call.dtype)));
        reduce_parts(pending, shares, share.data());
        return gather(pending, share.data(), shares, call.recv);
      }
      case CollectiveKind::broadcast: {
        const ByteParts parts(call.counts, call.dtype);
        if (rank_ == call.root && call.send != call.recv && parts.total() > 0) {
          std::memcpy(call.recv, call.send, parts.total());
        }
        MPI_Request request = MPI_REQUEST_NULL;
        KITCHEN_MPI_CHECK(
            MPI_Ibcast(call.recv, parts.bytes[0], MPI_BYTE, call.root, comm_, &request));
        return await(request, pending);
      }
    }
  }

  void gather(const Pending& pending, const void* send, const std::vector<std::int64_t>& counts,
              void* recv) const {
    const ByteParts parts(counts, pending.call.dtype);
    MPI_Request request = MPI_REQUEST_NULL;
    KITCHEN_MPI_CHECK(MPI_Iallgatherv(send, parts.bytes[static_cast<std::size_t>(rank_)], MPI_BYTE,
                                      recv, parts.bytes.data(), parts.offsets.data(), MPI_BYTE,
                                      comm_, &request));
    await(request, pending);
  }

  void exchange(const Pending& pending, const ByteParts& to, const ByteParts& from,
                void* recv) const {
    MPI_Request request = MPI_REQUEST_NULL;
    KITCHEN_MPI_CHECK(MPI_Ialltoallv(pending.call.send, to.bytes.data(), to.offsets.data(),
                                     MPI_BYTE, recv, from.bytes.data(), from.offsets.data(),
                                     MPI_BYTE, comm_, &request));
    await(request, pending);
  }

  /// This rank's part of the reduction of `send`, into `out`.
  void reduce_parts(const Pending& pending, const std::vector<std::int64_t>& counts,
                    void* out) const {
    const DType dtype = pending.call.dtype;
    const std::int64_t own = counts[static_cast<std::size_t>(rank_)];
    const ByteParts from(std::vector<std::int64_t>(ranks_.size(), own), dtype);
    std::vector<std::uint8_t> inputs(from.total());
    exchange(pending, ByteParts(counts, dtype), from, inputs.data());
    std::vector<const void*> parts;
    for (const int offset : from.offsets) parts.push_back(inputs.data() + offset);
    reduce_in_rank_order(dtype, pending.call.reduce, parts, out, own);
  }

  MPI_Comm comm_;
  std::vector<int> ranks_;
  int rank_;
  std::string name_;
  std::chrono::milliseconds deadline_;
  std::int64_t started_ = 0;
  std::deque<std::shared_ptr<Pending>> queue_;
};

/// MPI from its start to its end.
class Session {
 public:
  Session() {
    int provided = 0;
    KITCHEN_MPI_CHECK(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided));
    KITCHEN_MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    KITCHEN_MPI_CHECK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  }
  ~Session() { MPI_Finalize(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int rank = 0;
  int size = 1;
};

void print_failure(int rank, const char* cause) {
  std::fprintf(stderr, "rank %d failed: %s\n", rank, cause);
  std::fflush(stderr);
}

}  // namespace

int run_mpi_rank(const std::function<void()>& body, const MpiRankOptions& options) {
  const Session session;
  try {
    require_same_world(options.environment, session.rank, session.size);
  } catch (const ValueError& error) {
    print_failure(session.rank, error.what());
    return 2;
  }
  std::string cause;
  try {
    const RankScope scope(std::make_shared<RankState>(session.rank, session.size));
    current_rank_state().set_default_context(options.context);
    std::vector<int> all;
    for (int rank = 0; rank < session.size; ++rank) all.push_back(rank);
    if (session.size > 1) {
      init_process_group(std::make_shared<MpiCommunicator>(MPI_COMM_WORLD, all, session.rank,
                                                           "world", options.deadline));
    }
    body();
    return 0;
  } catch (const std::exception& error) {
    cause = error.what();
  } catch (...) {
    cause = "an exception that is no std::exception";
  }
  print_failure(session.rank, cause.c_str());
  if (session.size > 1) MPI_Abort(MPI_COMM_WORLD, 1);
  return 1;
}

}  // namespace kitchen::parallel
