#include "kitchen/parallel/run_ranks.h"

#include "kitchen/base/error.h"
#include "kitchen/base/rank_state.h"
#include "kitchen/base/rethrow.h"
#include "kitchen/parallel/process_group.h"
#include "kitchen/parallel/thread_communicator.h"

#include <omp.h>

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

namespace kitchen::parallel {

namespace {

std::vector<ContextPtr> make_contexts(int num_ranks, const RunRanksOptions& options) {
  const ContextPtr outer = current_rank_state().default_context();
  std::vector<ContextPtr> contexts;
  for (int rank = 0; rank < num_ranks; ++rank) {
    if (options.make_context) {
      contexts.push_back(options.make_context(rank));
    } else {
      contexts.push_back(outer ? std::make_shared<Context>(outer->device(), outer->backend_ptr(),
                                                           outer->allocator())
                               : nullptr);
    }
  }
  return contexts;
}

/// What the rank threads leave behind; only the rank that fails first writes.
struct Failure {
  std::exception_ptr error;
  int rank = -1;
};

void run_rank(int rank, const std::vector<int>& all, const std::shared_ptr<ThreadWorld>& world,
              const ContextPtr& context, const std::function<void()>& body, Failure& failure) {
  const RankScope scope(std::make_shared<RankState>(rank, static_cast<int>(all.size())));
  current_rank_state().set_default_context(context);
  const auto record = [&](const std::string& cause) {
    if (world->fail(rank, cause)) failure = {std::current_exception(), rank};
  };
  try {
    init_process_group(std::make_shared<ThreadCommunicator>(world, all, rank, "world"));
    body();
  } catch (const std::exception& error) {
    record(error.what());
  } catch (...) {
    record("an exception that is no std::exception");
  }
  world->leave(rank);
}

[[noreturn]] void rethrow(const Failure& failure) {
  const std::string suffix = " (rank " + std::to_string(failure.rank) + ")";
  try {
    std::rethrow_exception(failure.error);
  } catch (const Error& error) {
    rethrow_with_suffix(error, suffix);
  } catch (const std::exception& error) {
    throw RuntimeError(error.what() + suffix);
  }
}

}  // namespace

void run_ranks(int num_ranks, const std::function<void()>& body, const RunRanksOptions& options) {
  if (num_ranks < 1) {
    throw ValueError("run_ranks: num_ranks is " + std::to_string(num_ranks) +
                     "; at least 1 is wanted");
  }
  std::vector<int> all;
  for (int rank = 0; rank < num_ranks; ++rank) all.push_back(rank);
  const std::vector<ContextPtr> contexts = make_contexts(num_ranks, options);
  const auto world = std::make_shared<ThreadWorld>(options.deadline);
  const int kernel_threads = std::max(1, omp_get_max_threads() / num_ranks);
  Failure failure;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < num_ranks; ++rank) {
    threads.emplace_back([&, rank] {
      omp_set_num_threads(kernel_threads);  // of this thread alone
      run_rank(rank, all, world, contexts[static_cast<std::size_t>(rank)], body, failure);
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (failure.error) rethrow(failure);
}

}  // namespace kitchen::parallel
