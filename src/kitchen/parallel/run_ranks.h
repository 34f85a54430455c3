#pragma once

#include "kitchen/base/context.h"
#include "kitchen/parallel/communicator.h"

#include <functional>

namespace kitchen::parallel {

struct RunRanksOptions {
  std::chrono::milliseconds deadline = kDefaultDeadline;  ///< of each collective
  /// The default context of a rank; null: a context of its own on the caller's default backend, if
  /// there is one.
  std::function<ContextPtr(int rank)> make_context;
};

/// Runs `body` on `num_ranks` threads, each a rank with a RankState, a context and a world group of
/// its own, and returns when all have ended. The kernels of a rank use cores / num_ranks threads.
///
/// A rank that throws ends the others: each throws a RuntimeError in the collective that it waits
/// in.
/// @throws what the rank threw that failed first, of the same type if it is a kitchen::Error, with
///         " (rank <r>)" at the end of its text; ValueError if num_ranks is below 1.
void run_ranks(int num_ranks, const std::function<void()>& body,
               const RunRanksOptions& options = {});

}  // namespace kitchen::parallel
