#include "kitchen/modules/linear_function.h"

#include "kitchen/base/error.h"
#include "kitchen/modules/linear_operands.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/parallel/collective_recorder.h"

namespace kitchen::modules {

namespace {

void require_input(const Tensor& x, const Tensor& weight, const LinearCall& call) {
  if (x.dim(-1) != weight.dim(1)) {
    throw ValueError(call.module + ": the input's last size is " + std::to_string(x.dim(-1)) +
                     ", the weight expects in_features = " + std::to_string(weight.dim(1)));
  }
  if (call.split.sequence_parallel && x.rank() < 2) {
    throw ValueError(call.module + ": the input has shape " + to_string(x.shape()) +
                     "; sequence parallelism needs [sequence, ..., features]");
  }
}

/// The whole y of a row-parallel layer, or this rank's part of it, from the partial sums `y`.
Tensor reduce_output(const LinearSplit& split, const Tensor& y, const Tensor& bias) {
  const Tensor reduced =
      split.sequence_parallel ? split.group->reduce_scatter(y) : split.group->all_reduce(y);
  return bias.defined() ? ops::add_bias(reduced, bias) : reduced;
}

/// Starts the sum of the ranks' partial dx of a column-parallel layer; other layers have the whole dx.
Work reduce_dx(const LinearSplit& split, const Tensor& dx) {
  if (!split.is_column() || !dx.defined()) return Work(dx);
  return split.sequence_parallel ? split.group->reduce_scatter_async(dx)
                                 : split.group->all_reduce_async(dx);
}

Tensor dgrad(const LinearFunction::Saved& saved, const Operand& g) {
  const LinearCall& call = saved.call;
  const Operand w_columnwise = saved.w_columnwise.defined() ? saved.w_columnwise
                                                            : weight_columnwise(call, saved.weight);
  call.quantizers->w.note_use({&w_columnwise});
  return operand_gemm(g, w_columnwise, saved.x_dtype, call.params->mm_dgrad).view(saved.x_shape);
}

/// The weight's gradient; undefined if it was added to the leaf's main_grad.
Tensor wgrad(const LinearFunction::Saved& saved, const Operand& g, autograd::VariableMeta* leaf) {
  const LinearCall& call = saved.call;
  if (!call.fuse_wgrad_accumulation) {
    return operand_gemm(g, saved.x_columnwise, saved.weight.dtype(), call.params->mm_wgrad);
  }
  const Tensor main_grad = require_main_grad(call, leaf);
  operand_gemm_accumulate(g, saved.x_columnwise, main_grad, call.params->mm_wgrad);
  leaf->grad_added_to_main_grad = true;
  return {};
}

}  // namespace

std::vector<Tensor> LinearFunction::Saved::tensors() const {
  std::vector<Tensor> all{weight};
  if (x_part.defined()) all.push_back(x_part);
  for (const Operand* operand : {&x_columnwise, &w_columnwise}) {
    if (!operand->defined()) continue;
    for (const Tensor& tensor : operand->tensors()) all.push_back(tensor);
  }
  return all;
}

Tensor LinearFunction::forward(autograd::FunctionContext<Saved>& ctx, const Tensor& x,
                               const Tensor& weight, const Tensor& bias, const LinearCall& call) {
  require_input(x, weight, call);
  const QLinearParams& params = *call.params;
  const LinearSplit& split = call.split;
  const bool gathers = split.is_column() && split.sequence_parallel;
  const Tensor full = gathers ? split.group->all_gather(x) : x;
  const bool needs_dgrad = ctx.needs_grad(0);
  const Operand x_rowwise = x_for_fprop(call, full);
  const Operand w_rowwise = weight_for_fprop(call, weight, needs_dgrad);
  const Tensor y = operand_gemm(x_rowwise, w_rowwise, x.dtype(), params.mm_fprop, 1.0f,
                                split.is_row() ? Tensor() : bias);
  if (ctx.recording()) {
    Saved& saved = ctx.saved;
    saved.weight = weight;
    saved.call = call;
    saved.x_shape = full.shape();
    saved.x_dtype = x.dtype();
    saved.has_bias = bias.defined();
    if (bias.defined()) saved.bias_dtype = bias.dtype();
    if (needs_dgrad && call.cache) saved.w_columnwise = call.cache->columnwise;
    if (ctx.needs_grad(1) && gathers) saved.x_part = x;
    if (ctx.needs_grad(1) && !gathers) saved.x_columnwise = x_for_wgrad(call, x);
    call.quantizers->x.note_use({&x_rowwise, &saved.x_columnwise});
    // Codes from the cache count in each step that uses them, whoever filled it.
    call.quantizers->w.note_use({&w_rowwise, &saved.w_columnwise});
  }
  Shape shape = full.shape();
  shape.back() = weight.dim(0);
  return split.is_row() ? reduce_output(split, y.view(shape), bias) : y.view(shape);
}

std::vector<Tensor> LinearFunction::backward(autograd::FunctionContext<Saved>& ctx,
                                             const std::vector<Tensor>& grads) {
  const BackwardScope scope;
  Saved& saved = ctx.saved;
  const LinearCall& call = saved.call;
  const LinearSplit& split = call.split;
  // Started before dgrad, so that gathering x costs no time of its own.
  Work x_gather = saved.x_part.defined() ? split.group->all_gather_async(saved.x_part) : Work(Tensor());
  const bool gathers_g = split.is_row() && split.sequence_parallel;
  const Tensor g = flatten_tokens(gathers_g ? split.group->all_gather(grads[0]) : grads[0]);
  const Operand g_rowwise = ctx.needs_grad(0) ? g_for_dgrad(call, g) : Operand();
  const Tensor partial_dx = ctx.needs_grad(0) ? dgrad(saved, g_rowwise) : Tensor();
  if (saved.x_part.defined()) {
    saved.x_columnwise = x_for_wgrad(call, x_gather.wait());
    call.quantizers->x.note_use({&saved.x_columnwise});
  }
  Work dx = reduce_dx(split, partial_dx);
  const Operand g_columnwise = ctx.needs_grad(1) ? g_for_wgrad(call, g) : Operand();
  const Tensor dw = ctx.needs_grad(1) ? wgrad(saved, g_columnwise, ctx.leaf(1).get()) : Tensor();
  call.quantizers->g.note_use({&g_rowwise, &g_columnwise});
  Tensor db;
  if (saved.has_bias && ctx.needs_grad(2)) {
    db = ops::cast(ops::sum_rows(flatten_tokens(grads[0])), saved.bias_dtype);
  }
  return {dx.wait(), dw, db};
}

}  // namespace kitchen::modules
