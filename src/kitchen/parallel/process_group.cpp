#include "kitchen/parallel/process_group.h"

#include "kitchen/base/error.h"
#include "kitchen/base/memory_kernels.h"
#include "kitchen/base/rank_state.h"
#include "kitchen/parallel/collective_recorder.h"
#include "kitchen/parallel/rank_order_reduction.h"

#include <numeric>
#include <utility>

namespace kitchen {

using parallel::CollectiveCall;
using parallel::CollectiveKind;

namespace {

/// The world of a rank, in its RankState.
struct World {
  std::shared_ptr<ProcessGroup> group;
};

/// `x` without autograd state, row-major.
Tensor packed(const Tensor& x) {
  if (x.is_contiguous()) return x.detach();
  const Tensor copy = Tensor::empty(x.context(), x.shape(), x.dtype());
  x.context()->launch<CopyStridedKernel>({}, x.const_view(), copy.kernel_view());
  return copy;
}

Tensor with_rows(const Tensor& x, std::int64_t rows) {
  Shape shape = x.shape();
  shape.at(0) = rows;
  return Tensor::empty(x.context(), shape, x.dtype());
}

/// Elements of one row of dimension 0, also where there are no rows.
std::int64_t row_elements(const Tensor& x) {
  return std::accumulate(x.shape().begin() + 1, x.shape().end(), std::int64_t{1},
                         std::multiplies<>());
}

std::vector<std::int64_t> times(std::vector<std::int64_t> rows, std::int64_t factor) {
  for (std::int64_t& count : rows) count *= factor;
  return rows;
}

std::int64_t sum_of(const std::vector<std::int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
}

void require_rows(const char* op, const char* what, const Tensor& x) {
  if (x.rank() >= 1) return;
  throw ValueError(std::string(op) + ": " + what + " has no dimension 0");
}

/// One entry a rank, none negative, and if `sum` is given they sum to it.
void require_sizes(const char* op, const char* name, const std::vector<std::int64_t>& sizes,
                   int ranks, std::int64_t sum) {
  bool negative = false;
  for (const std::int64_t size : sizes) negative = negative || size < 0;
  if (static_cast<int>(sizes.size()) == ranks && !negative && sum_of(sizes) == sum) return;
  throw ValueError(std::string(op) + ": " + name + " " + to_string(Shape(sizes)) + " must be " +
                   std::to_string(ranks) + " sizes, one a rank, that sum to " +
                   std::to_string(sum));
}

}  // namespace

Tensor Work::wait() {
  if (const auto transfer = std::move(transfer_)) transfer->wait();
  input_ = Tensor();
  return result_;
}

ProcessGroup::ProcessGroup(std::vector<int> ranks, int rank, std::string name)
    : ranks_(std::move(ranks)), rank_(rank), name_(std::move(name)) {
  if (rank_ < 0 || rank_ >= size()) {
    throw ValueError("ProcessGroup: rank " + std::to_string(rank_) + " of a group of " +
                     std::to_string(size()) + " ranks");
  }
}

ProcessGroup::ProcessGroup(std::shared_ptr<parallel::Communicator> communicator, std::string name)
    : ProcessGroup(communicator->ranks(), communicator->rank(), std::move(name)) {
  communicator_ = std::move(communicator);
}

std::shared_ptr<ProcessGroup> ProcessGroup::self() {
  return std::make_shared<ProcessGroup>(std::vector<int>{current_rank_state().rank()}, 0, "self");
}

Work ProcessGroup::start(CollectiveCall call, const Tensor& input, const Tensor& result) const {
  const std::string op = parallel::to_string(call.kind);
  if (!communicator_) {
    throw RuntimeError(
        op + " over a group of " + std::to_string(size()) +
        " ranks that has no communicator; take groups from initialize_model_parallel");
  }
  const Tensor& any = input.defined() ? input : result;
  CollectiveRecorder::note({op, name_, input.defined() ? input.nbytes() : 0, false});
  if (any.defined()) {
    if (any.context()->is_meta()) return Work(result);
    if (any.device().type != DeviceType::cpu) {
      throw NotImplementedError(op + " of a tensor on " + to_string(any.device()) +
                                " through the " + communicator_->backend() +
                                " communicator, which moves host memory only");
    }
    call.dtype = any.dtype();
    call.send = input.defined() ? input.raw_data() : nullptr;
    call.recv = result.raw_data();
  }
  return {input, result, communicator_->start(call)};
}

Work ProcessGroup::all_reduce_async(const Tensor& x, ReduceOp op) const {
  if (size() == 1) return Work(x);
  parallel::require_reducible(x.dtype(), op);
  CollectiveCall call;
  call.kind = CollectiveKind::all_reduce;
  call.reduce = op;
  call.counts = {x.numel()};
  return start(std::move(call), packed(x), Tensor::empty(x.context(), x.shape(), x.dtype()));
}

Work ProcessGroup::all_reduce_inplace_async(const Tensor& x, ReduceOp op) const {
  if (size() == 1) return Work(x);
  parallel::require_reducible(x.dtype(), op);
  if (!x.is_contiguous()) {
    throw ValueError("all_reduce_inplace: the tensor of shape " + to_string(x.shape()) +
                     " is not contiguous; use all_reduce, which returns a new one");
  }
  CollectiveCall call;
  call.kind = CollectiveKind::all_reduce;
  call.reduce = op;
  call.counts = {x.numel()};
  return start(std::move(call), x.detach(), x);
}

Work ProcessGroup::all_gather_async(const Tensor& x, const std::vector<std::int64_t>& sizes) const {
  require_rows("all_gather", "the tensor", x);
  if (size() == 1) return Work(x);
  const std::vector<std::int64_t> rows =
      sizes.empty() ? std::vector<std::int64_t>(ranks_.size(), x.dim(0)) : sizes;
  require_sizes("all_gather", "sizes", rows, size(), sum_of(rows));
  if (rows[static_cast<std::size_t>(rank_)] != x.dim(0)) {
    throw ValueError("all_gather: rank " + std::to_string(rank_) + " of the group has " +
                     std::to_string(x.dim(0)) + " rows, sizes " + to_string(Shape(rows)) +
                     " say another number");
  }
  CollectiveCall call;
  call.kind = CollectiveKind::all_gather;
  call.counts = times(rows, row_elements(x));
  return start(std::move(call), packed(x), with_rows(x, sum_of(rows)));
}

Work ProcessGroup::reduce_scatter_async(const Tensor& x, ReduceOp op,
                                        const std::vector<std::int64_t>& sizes) const {
  require_rows("reduce_scatter", "the tensor", x);
  if (size() == 1) return Work(x);
  parallel::require_reducible(x.dtype(), op);
  const std::vector<std::int64_t> rows =
      sizes.empty() ? std::vector<std::int64_t>(ranks_.size(), divide(x.dim(0), size())) : sizes;
  require_sizes("reduce_scatter", "sizes", rows, size(), x.dim(0));
  CollectiveCall call;
  call.kind = CollectiveKind::reduce_scatter;
  call.reduce = op;
  call.counts = times(rows, row_elements(x));
  return start(std::move(call), packed(x), with_rows(x, rows[static_cast<std::size_t>(rank_)]));
}

Work ProcessGroup::all_to_all_async(const Tensor& x, std::vector<std::int64_t> output_splits,
                                    std::vector<std::int64_t> input_splits) const {
  require_rows("all_to_all", "the tensor", x);
  if (output_splits.empty() && input_splits.empty()) {
    input_splits.assign(ranks_.size(), divide(x.dim(0), size()));
    output_splits = input_splits;
  }
  require_sizes("all_to_all", "input_splits", input_splits, size(), x.dim(0));
  require_sizes("all_to_all", "output_splits", output_splits, size(), sum_of(output_splits));
  if (size() == 1) {
    require_sizes("all_to_all", "output_splits", output_splits, size(), x.dim(0));
    return Work(x);
  }
  CollectiveCall call;
  call.kind = CollectiveKind::all_to_all;
  call.counts = times(input_splits, row_elements(x));
  call.recv_counts = times(output_splits, row_elements(x));
  return start(std::move(call), packed(x), with_rows(x, sum_of(output_splits)));
}

Work ProcessGroup::broadcast_async(const Tensor& x, int root) const {
  if (root < 0 || root >= size()) {
    throw ValueError("broadcast: root is " + std::to_string(root) + " in a group of " +
                     std::to_string(size()) + " ranks");
  }
  if (size() == 1) return Work(x);
  CollectiveCall call;
  call.kind = CollectiveKind::broadcast;
  call.root = root;
  call.counts = {x.numel()};
  return start(std::move(call), packed(x), Tensor::empty(x.context(), x.shape(), x.dtype()));
}

void ProcessGroup::barrier() const {
  if (size() > 1) (void)start({}, Tensor(), Tensor()).wait();
}

void init_process_group(std::shared_ptr<parallel::Communicator> communicator) {
  current_rank_state().slot<World>().group =
      std::make_shared<ProcessGroup>(std::move(communicator), "world");
}

std::shared_ptr<ProcessGroup> world_group() {
  const std::shared_ptr<ProcessGroup>& group = current_rank_state().slot<World>().group;
  return group ? group : ProcessGroup::self();
}

std::int64_t divide(std::int64_t a, std::int64_t b) {
  if (b == 0 || a % b != 0) {
    throw AssertionError(std::to_string(a) + " is not divisible by " + std::to_string(b));
  }
  return a / b;
}

}  // namespace kitchen
