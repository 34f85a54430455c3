#pragma once

#include "kitchen/base/tensor.h"
#include "kitchen/parallel/communicator.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kitchen {

/// A collective under way. Keeps what it reads and writes alive.
class Work {
 public:
  /// Nothing is left to do: `result` is complete.
  explicit Work(Tensor result) : result_(std::move(result)) {}
  Work(Tensor input, Tensor result, std::unique_ptr<parallel::Transfer> transfer)
      : input_(std::move(input)), result_(std::move(result)), transfer_(std::move(transfer)) {}

  /// The complete result; undefined for a barrier. May be called again.
  /// @throws RuntimeError as parallel::Transfer::wait.
  Tensor wait();

 private:
  Tensor input_;
  Tensor result_;
  std::unique_ptr<parallel::Transfer> transfer_;
};

/// An ordered set of ranks that hold parts of one tensor or replicas of it, and the collectives
/// over them.
///
/// Collectives take dense tensors of any strides, work along dimension 0 and return new contiguous
/// tensors without autograd state (the differentiable ones are in modules/mappings.h). Every rank
/// of the group must call them in the same order. In a group of one rank each is the identity: it
/// returns `x` itself. On the meta device only shapes and allocations happen.
class ProcessGroup {
 public:
  /// A layout without a communicator: its collectives throw if it has more than one rank.
  /// @param ranks global ranks of the members, in group order, at least one.
  /// @param rank this process's index in `ranks`.
  /// @throws ValueError if `ranks` is empty or `rank` is outside of it.
  ProcessGroup(std::vector<int> ranks, int rank, std::string name = "");
  ProcessGroup(std::shared_ptr<parallel::Communicator> communicator, std::string name);

  /// The group of this rank alone: what a process has that initialised no process group.
  static std::shared_ptr<ProcessGroup> self();

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] const std::vector<int>& ranks() const { return ranks_; }
  /// "tp", "dp", ...; what messages and records call it.
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Null for a layout only.
  [[nodiscard]] const std::shared_ptr<parallel::Communicator>& communicator() const {
    return communicator_;
  }

  /// Reduction over ranks, the same shape on each: rank order, deterministic (Communicator::start).
  [[nodiscard]] Work all_reduce_async(const Tensor& x, ReduceOp op = ReduceOp::sum) const;
  /// As all_reduce_async, into `x` itself, which must be contiguous and may not be touched until
  /// wait().
  [[nodiscard]] Work all_reduce_inplace_async(const Tensor& x, ReduceOp op = ReduceOp::sum) const;
  /// Parts [n_r, ...] -> [sum of n_r, ...]. @param sizes n_r of each rank; empty: all as this
  /// rank's.
  [[nodiscard]] Work all_gather_async(const Tensor& x,
                                      const std::vector<std::int64_t>& sizes = {}) const;
  /// [n, ...] -> this rank's rows of the reduction. @param sizes rows of each rank; empty: n /
  /// size() each.
  /// @throws AssertionError "is not divisible by"; ValueError if the sizes do not sum to n.
  [[nodiscard]] Work reduce_scatter_async(const Tensor& x, ReduceOp op = ReduceOp::sum,
                                          const std::vector<std::int64_t>& sizes = {}) const;
  /// Sends input_splits[j] rows of `x` to rank j and takes output_splits[j] rows from it; both
  /// empty: equal parts. The ranks compare their counts first.
  [[nodiscard]] Work all_to_all_async(const Tensor& x, std::vector<std::int64_t> output_splits = {},
                                      std::vector<std::int64_t> input_splits = {}) const;
  /// `x` of the rank with index `root`; the others give its shape by theirs.
  [[nodiscard]] Work broadcast_async(const Tensor& x, int root) const;

  [[nodiscard]] Tensor all_reduce(const Tensor& x, ReduceOp op = ReduceOp::sum) const {
    return all_reduce_async(x, op).wait();
  }
  void all_reduce_inplace(const Tensor& x, ReduceOp op = ReduceOp::sum) const {
    (void)all_reduce_inplace_async(x, op).wait();
  }
  [[nodiscard]] Tensor all_gather(const Tensor& x,
                                  const std::vector<std::int64_t>& sizes = {}) const {
    return all_gather_async(x, sizes).wait();
  }
  [[nodiscard]] Tensor reduce_scatter(const Tensor& x, ReduceOp op = ReduceOp::sum,
                                      const std::vector<std::int64_t>& sizes = {}) const {
    return reduce_scatter_async(x, op, sizes).wait();
  }
  [[nodiscard]] Tensor all_to_all(const Tensor& x, std::vector<std::int64_t> output_splits = {},
                                  std::vector<std::int64_t> input_splits = {}) const {
    return all_to_all_async(x, std::move(output_splits), std::move(input_splits)).wait();
  }
  [[nodiscard]] Tensor broadcast(const Tensor& x, int root) const {
    return broadcast_async(x, root).wait();
  }
  /// Returns when every rank of the group has called it.
  void barrier() const;

 private:
  /// Records and starts `call`, whose memory is that of `input` and `result`.
  [[nodiscard]] Work start(parallel::CollectiveCall call, const Tensor& input,
                           const Tensor& result) const;

  std::vector<int> ranks_;
  int rank_;
  std::string name_;
  std::shared_ptr<parallel::Communicator> communicator_;
};

/// Makes `communicator` the world of this rank.
void init_process_group(std::shared_ptr<parallel::Communicator> communicator);

/// All ranks; the self group where init_process_group was not called.
std::shared_ptr<ProcessGroup> world_group();

/// a / b. @throws AssertionError "<a> is not divisible by <b>".
std::int64_t divide(std::int64_t a, std::int64_t b);

}  // namespace kitchen
