#pragma once

#include "kitchen/parallel/collective_call.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace kitchen::parallel {

/// How long a rank waits for the others in one collective before it gives the job up.
inline constexpr std::chrono::milliseconds kDefaultDeadline{60000};

/// A collective under way.
class Transfer {
 public:
  virtual ~Transfer() = default;

  /// Returns when `recv` is complete. Called at most once.
  /// @throws RuntimeError naming this rank, the collective and the cause, if the ranks' calls do
  /// not fit
  ///         together, if a rank is missing after the deadline, or if another rank has failed.
  virtual void wait() = 0;
};

/// Moves data between the ranks of one group. Implementations: threads of one process, MPI.
///
/// Collectives of one communicator happen in the order in which they are started, which must be the
/// same on each rank. `send` may be reused, and read or written, only after wait().
class Communicator {
 public:
  virtual ~Communicator() = default;

  /// "threads" or "mpi".
  [[nodiscard]] virtual std::string backend() const = 0;
  /// Global ranks of the members, in group order.
  [[nodiscard]] virtual const std::vector<int>& ranks() const = 0;
  /// This rank's index in ranks().
  [[nodiscard]] virtual int rank() const = 0;

  /// Starts `call`. Sums are taken in rank order, bfloat16 and float16 in float32 with one rounding
  /// at the end, so that the result is a function of the inputs alone and equal on all ranks and
  /// backends.
  virtual std::unique_ptr<Transfer> start(const CollectiveCall& call) = 0;

  /// A communicator of `ranks`, global numbers of members of this one. Called by those members
  /// only, each with the same list. @param name is what messages call it.
  virtual std::shared_ptr<Communicator> split(const std::vector<int>& ranks,
                                              const std::string& name) = 0;
};

/// Index of `rank` in `ranks`. @throws ValueError naming both if it is not there.
int index_of_rank(const std::vector<int>& ranks, int rank);

/// "tp [0, 1]".
std::string describe_group(const std::string& name, const std::vector<int>& ranks);

}  // namespace kitchen::parallel
