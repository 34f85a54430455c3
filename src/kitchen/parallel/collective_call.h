#pragma once

#include "kitchen/base/dtype.h"

#include <cstdint>
#include <string>
#include <vector>

/// @file  collective_call.h
/// @brief One rank's side of a collective as plain data, which ranks compare and messages print.

namespace kitchen {

/// How values of several ranks become one. `avg` divides the sum by the number of ranks.
enum class ReduceOp { sum, max, avg };

/// "sum", "max" or "avg".
std::string to_string(ReduceOp op);

namespace parallel {

enum class CollectiveKind {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  all_to_all,
  barrier
};

/// "all_reduce", "all_gather", ...
std::string to_string(CollectiveKind kind);

/// What one rank asks for. Counts are elements of `dtype`; memory is host memory and contiguous.
struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::barrier;
  DType dtype = DType::uint8;
  ReduceOp reduce = ReduceOp::sum;
  int root = 0;  ///< broadcast: index in the group of the rank that sends
  /// all_reduce, broadcast: one entry. all_gather, reduce_scatter: the part of each rank.
  /// all_to_all: what goes to each rank.
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> recv_counts;  ///< all_to_all only: what each rank is expected to send
  const void* send = nullptr;
  void* recv = nullptr;  ///< may be `send` for all_reduce and broadcast
};

/// Elements that rank `rank` of the group reads from `send`.
std::int64_t elements_sent(const CollectiveCall& call, int rank);

/// "all_reduce(sum, float32, 409600)", "all_to_all(float32, to ranks [4, 0], from ranks [1, 2])".
std::string to_string(const CollectiveCall& call);

/// Why the calls of a group's ranks, in group order, do not belong together, naming two ranks by
/// their global number in `ranks` and both calls; empty if they do.
std::string describe_mismatch(const std::vector<CollectiveCall>& calls,
                              const std::vector<int>& ranks);

}  // namespace parallel
}  // namespace kitchen
