#include "kitchen/modules/mappings.h"

#include "kitchen/autograd/function.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/parallel/collective_recorder.h"

#include <numeric>

namespace kitchen {

namespace {

using autograd::Function;
using autograd::FunctionContext;

/// What a mapping does with its tensor, in one direction.
enum class Move {
  none,
  reduce,
  split_first,
  split_last,
  gather_first,
  gather_last,
  scatter_first,
  scatter_last
};

/// A mapping: its two directions and, if the ranks hold unequal parts of dimension 0, their rows.
struct Mapping {
  ProcessGroupPtr group;
  Move forward = Move::none;
  Move backward = Move::none;
  std::vector<std::int64_t> rows;
};

/// [..., n] with the last dimension first, row-major, and back: collectives work along dimension 0.
Tensor last_to_front(const Tensor& x) {
  std::vector<int> order{static_cast<int>(x.rank()) - 1};
  for (int i = 0; i + 1 < x.rank(); ++i) order.push_back(i);
  return x.permute(order);
}
Tensor front_to_last(const Tensor& x) {
  std::vector<int> order;
  for (int i = 1; i < x.rank(); ++i) order.push_back(i);
  order.push_back(0);
  return ops::contiguous(x.permute(order));
}

/// This rank's rows of dimension 0.
Tensor own_rows(const Tensor& x, const Mapping& mapping) {
  const ProcessGroup& group = *mapping.group;
  if (mapping.rows.empty()) {
    const std::int64_t rows = divide(x.dim(0), group.size());
    return ops::contiguous(x.slice(0, group.rank() * rows, rows));
  }
  const auto own = mapping.rows.begin() + group.rank();
  return ops::contiguous(
      x.slice(0, std::accumulate(mapping.rows.begin(), own, std::int64_t{0}), *own));
}

Tensor apply_move(Move move, const Tensor& x, const Mapping& mapping) {
  const ProcessGroup& group = *mapping.group;
  switch (move) {
    case Move::none:
      return x;
    case Move::reduce:
      return group.all_reduce(x);
    case Move::split_first:
      return own_rows(x, mapping);
    case Move::split_last: {
      const std::int64_t part = divide(x.dim(-1), group.size());
      return ops::contiguous(x.slice(x.rank() - 1, group.rank() * part, part));
    }
    case Move::gather_first:
      return group.all_gather(x, mapping.rows);
    case Move::gather_last:
      return front_to_last(group.all_gather(last_to_front(x)));
    case Move::scatter_first:
      return group.reduce_scatter(x, ReduceOp::sum, mapping.rows);
    case Move::scatter_last:
      return front_to_last(group.reduce_scatter(last_to_front(x)));
  }
  return x;
}

struct RegionMapping : Function<RegionMapping> {
  struct Saved {
    Mapping mapping;
    [[nodiscard]] std::vector<Tensor> tensors() const { return {}; }
  };
  static constexpr const char* kName = "RegionMapping";

  static Tensor forward(FunctionContext<Saved>& ctx, const Tensor& x, const Mapping& mapping) {
    ctx.saved.mapping = mapping;
    return apply_move(mapping.forward, x, mapping);
  }
  static std::vector<Tensor> backward(FunctionContext<Saved>& ctx,
                                      const std::vector<Tensor>& grads) {
    const BackwardScope scope;
    return {apply_move(ctx.saved.mapping.backward, grads[0], ctx.saved.mapping)};
  }
};

struct AllToAll : Function<AllToAll> {
  struct Saved {
    ProcessGroupPtr group;
    std::vector<std::int64_t> output_splits;
    std::vector<std::int64_t> input_splits;
    [[nodiscard]] std::vector<Tensor> tensors() const { return {}; }
  };
  static constexpr const char* kName = "AllToAll";

  static Tensor forward(FunctionContext<Saved>& ctx, const Tensor& x, const ProcessGroupPtr& group,
                        const std::vector<std::int64_t>& output_splits,
                        const std::vector<std::int64_t>& input_splits) {
    ctx.saved.group = group;
    ctx.saved.output_splits = output_splits;
    ctx.saved.input_splits = input_splits;
    return group->all_to_all(x, output_splits, input_splits);
  }
  static std::vector<Tensor> backward(FunctionContext<Saved>& ctx,
                                      const std::vector<Tensor>& grads) {
    const BackwardScope scope;
    return {ctx.saved.group->all_to_all(grads[0], ctx.saved.input_splits, ctx.saved.output_splits)};
  }
};

Tensor map(const Tensor& x, const ProcessGroupPtr& group, Move forward, Move backward,
           const std::vector<std::int64_t>& rows = {}) {
  const ProcessGroupPtr used = get_tensor_model_parallel_group_if_none(group, false);
  if (used->size() == 1) return x;
  return RegionMapping::apply(x, Mapping{used, forward, backward, rows});
}

}  // namespace

Tensor copy_to_tensor_model_parallel_region(const Tensor& x, const ProcessGroupPtr& group) {
  return map(x, group, Move::none, Move::reduce);
}

Tensor reduce_from_tensor_model_parallel_region(const Tensor& x, const ProcessGroupPtr& group) {
  return map(x, group, Move::reduce, Move::none);
}

Tensor scatter_to_tensor_model_parallel_region(const Tensor& x, const ProcessGroupPtr& group) {
  return map(x, group, Move::split_last, Move::gather_last);
}

Tensor gather_from_tensor_model_parallel_region(const Tensor& x, const ProcessGroupPtr& group) {
  return map(x, group, Move::gather_last, Move::split_last);
}

Tensor scatter_to_sequence_parallel_region(const Tensor& x, const ProcessGroupPtr& group) {
  return map(x, group, Move::split_first, Move::gather_first);
}

Tensor gather_from_sequence_parallel_region(const Tensor& x, bool tensor_parallel_output_grad,
                                            const ProcessGroupPtr& group,
                                            const std::vector<std::int64_t>& output_split_sizes) {
  return map(x, group, Move::gather_first,
             tensor_parallel_output_grad ? Move::scatter_first : Move::split_first,
             output_split_sizes);
}

Tensor reduce_scatter_to_sequence_parallel_region(
    const Tensor& x, const ProcessGroupPtr& group,
    const std::vector<std::int64_t>& input_split_sizes) {
  return map(x, group, Move::scatter_first, Move::gather_first, input_split_sizes);
}

Tensor all_gather_last_dim_from_tensor_parallel_region(const Tensor& x,
                                                       const ProcessGroupPtr& group) {
  return map(x, group, Move::gather_last, Move::scatter_last);
}

Tensor reduce_scatter_last_dim_to_tensor_parallel_region(const Tensor& x,
                                                         const ProcessGroupPtr& group) {
  return map(x, group, Move::scatter_last, Move::gather_last);
}

Tensor all_to_all(const ProcessGroupPtr& group, const Tensor& x,
                  const std::vector<std::int64_t>& output_splits,
                  const std::vector<std::int64_t>& input_splits) {
  const ProcessGroupPtr used = get_tensor_model_parallel_group_if_none(group, false);
  if (used->size() == 1) return x;
  return AllToAll::apply(x, used, output_splits, input_splits);
}

}  // namespace kitchen
