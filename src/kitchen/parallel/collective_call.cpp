#include "kitchen/parallel/collective_call.h"

#include <numeric>

namespace kitchen {

namespace {

std::string list(const std::vector<std::int64_t>& values) {
  std::string text = "[";
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(values[i]);
  }
  return text + "]";
}

}  // namespace

std::string to_string(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return "sum";
    case ReduceOp::max:
      return "max";
    case ReduceOp::avg:
      return "avg";
  }
  return "unknown";
}

namespace parallel {

std::string to_string(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "all_reduce";
    case CollectiveKind::all_gather:
      return "all_gather";
    case CollectiveKind::reduce_scatter:
      return "reduce_scatter";
    case CollectiveKind::broadcast:
      return "broadcast";
    case CollectiveKind::all_to_all:
      return "all_to_all";
    case CollectiveKind::barrier:
      return "barrier";
  }
  return "unknown";
}

std::int64_t elements_sent(const CollectiveCall& call, int rank) {
  switch (call.kind) {
    case CollectiveKind::all_reduce:
      return call.counts[0];
    case CollectiveKind::broadcast:
      return rank == call.root ? call.counts[0] : 0;
    case CollectiveKind::all_gather:
      return call.counts[static_cast<std::size_t>(rank)];
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
      return std::accumulate(call.counts.begin(), call.counts.end(), std::int64_t{0});
    case CollectiveKind::barrier:
      return 0;
  }
  return 0;
}

std::string to_string(const CollectiveCall& call) {
  const std::string name = to_string(call.kind);
  const std::string dtype = kitchen::to_string(call.dtype);
  switch (call.kind) {
    case CollectiveKind::barrier:
      return name;
    case CollectiveKind::all_reduce:
      return name + "(" + kitchen::to_string(call.reduce) + ", " + dtype + ", " +
             std::to_string(call.counts[0]) + ")";
    case CollectiveKind::broadcast:
      return name + "(" + dtype + ", " + std::to_string(call.counts[0]) + ", root " +
             std::to_string(call.root) + ")";
    case CollectiveKind::all_gather:
      return name + "(" + dtype + ", " + list(call.counts) + ")";
    case CollectiveKind::reduce_scatter:
      return name + "(" + kitchen::to_string(call.reduce) + ", " + dtype + ", " +
             list(call.counts) + ")";
    case CollectiveKind::all_to_all:
      return name + "(" + dtype + ", to ranks " + list(call.counts) + ", from ranks " +
             list(call.recv_counts) + ")";
  }
  return name;
}

std::string describe_mismatch(const std::vector<CollectiveCall>& calls,
                              const std::vector<int>& ranks) {
  const auto disagree = [&](std::size_t a, std::size_t b) {
    return "rank " + std::to_string(ranks[a]) + " calls " + to_string(calls[a]) + ", rank " +
           std::to_string(ranks[b]) + " calls " + to_string(calls[b]) +
           "; every rank of a group must call the same collectives with the same sizes in the same "
           "order";
  };
  for (std::size_t i = 1; i < calls.size(); ++i) {
    const CollectiveCall& a = calls[0];
    const CollectiveCall& b = calls[i];
    const bool same_counts = a.kind == CollectiveKind::all_to_all || a.counts == b.counts;
    if (a.kind != b.kind || a.dtype != b.dtype || a.reduce != b.reduce || a.root != b.root ||
        !same_counts) {
      return disagree(0, i);
    }
  }
  if (calls.empty() || calls[0].kind != CollectiveKind::all_to_all) return "";
  for (std::size_t from = 0; from < calls.size(); ++from) {
    for (std::size_t to = 0; to < calls.size(); ++to) {
      if (calls[from].counts[to] != calls[to].recv_counts[from]) return disagree(from, to);
    }
  }
  return "";
}

}  // namespace parallel
}  // namespace kitchen
