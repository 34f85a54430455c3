#include "kitchen/modules/grouped_linear_function.h"

#include "kitchen/base/error.h"
#include "kitchen/modules/linear_operands.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/ops/grouped_gemm.h"
#include "kitchen/parallel/collective_recorder.h"

#include <algorithm>

namespace kitchen::modules {

namespace {

using SavedContext = autograd::FunctionContext<GroupedLinearFunction::Saved>;
using MakeOperand = Operand (*)(const LinearCall&, const Tensor&);

Operands make_operands(MakeOperand make, const GroupedLinearCall& call,
                       const std::vector<Tensor>& groups) {
  Operands operands;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    operands.push_back(make(call.experts[i], groups[i]));
  }
  return operands;
}

void require_input(const Tensor& x, const std::vector<Tensor>& weights,
                   const GroupedLinearCall& call) {
  const std::string& module = call.experts[0].module;
  if (x.rank() != 2 || x.dim(1) != weights[0].dim(1)) {
    throw ValueError(module + ": the input has shape " + to_string(x.shape()) +
                     ", expected [rows, in_features = " + std::to_string(weights[0].dim(1)) + "]");
  }
  if (call.splits.size() != weights.size()) {
    throw ValueError(module + ": m_splits has " + std::to_string(call.splits.size()) +
                     " entries for num_gemms = " + std::to_string(weights.size()));
  }
}

bool wants_any(const SavedContext& ctx, std::size_t first, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (ctx.needs_grad(first + i)) return true;
  }
  return false;
}

/// The whole y of a row-parallel layer from the partial sums `y`.
Tensor reduce_output(const GroupedLinearCall& call, const Tensor& y,
                     const std::vector<Tensor>& biases) {
  const Tensor reduced = call.experts[0].split.group->all_reduce(y);
  if (biases.empty()) return reduced;
  const std::vector<Tensor> groups = ops::split_groups(reduced, call.splits);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    ops::copy_into(ops::add_bias(groups[i], biases[i]), groups[i]);
  }
  return reduced;
}

void save(SavedContext& ctx, const Tensor& x, const std::vector<Tensor>& weights,
          const std::vector<Tensor>& biases, const GroupedLinearCall& call) {
  GroupedLinearFunction::Saved& saved = ctx.saved;
  saved.weights = weights;
  saved.call = call;
  saved.x_dtype = x.dtype();
  for (const Tensor& bias : biases) saved.bias_dtypes.push_back(bias.dtype());
  saved.x_columnwise.resize(weights.size());
  saved.w_columnwise.resize(weights.size());
  if (wants_any(ctx, 1, weights.size())) {
    saved.x_columnwise = make_operands(x_for_wgrad, call, ops::split_groups(x, call.splits));
  }
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto& cache = call.experts[i].cache;
    if (ctx.needs_grad(0) && cache) saved.w_columnwise[i] = cache->columnwise;
  }
}

Tensor dgrad(const GroupedLinearFunction::Saved& saved, const Operands& g) {
  const std::vector<LinearCall>& experts = saved.call.experts;
  Operands w = saved.w_columnwise;
  for (std::size_t i = 0; i < w.size(); ++i) {
    if (!w[i].defined()) w[i] = weight_columnwise(experts[i], saved.weights[i]);
    experts[i].quantizers->w.note_use({&w[i]});
  }
  return grouped_operand_gemm(g, w, saved.x_dtype, experts[0].params->mm_dgrad);
}

/// The weights' gradients; undefined where none is wanted or where it was added to the leaf's
/// main_grad.
std::vector<Tensor> wgrad(const SavedContext& ctx, const Operands& g) {
  const GroupedLinearFunction::Saved& saved = ctx.saved;
  const std::vector<LinearCall>& experts = saved.call.experts;
  const bool fused = experts[0].fuse_wgrad_accumulation;
  std::vector<Tensor> outs;
  for (std::size_t i = 0; i < experts.size(); ++i) {
    const Tensor& weight = saved.weights[i];
    if (fused && ctx.needs_grad(1 + i)) {
      outs.push_back(require_main_grad(experts[i], ctx.leaf(1 + i).get()));
    } else {
      outs.push_back(Tensor::zeros(weight.context(), weight.shape(), weight.dtype()));
    }
  }
  grouped_operand_gemm_into(g, saved.x_columnwise, outs, fused, experts[0].params->mm_wgrad);
  for (std::size_t i = 0; i < experts.size(); ++i) {
    if (fused || !ctx.needs_grad(1 + i)) outs[i] = Tensor();
    if (fused && ctx.needs_grad(1 + i)) ctx.leaf(1 + i)->grad_added_to_main_grad = true;
  }
  return outs;
}

/// The columnwise copies of g and the weights' gradients from them.
std::vector<Tensor> weight_gradients(const SavedContext& ctx, const std::vector<Tensor>& g,
                                     Operands& g_columnwise) {
  if (!wants_any(ctx, 1, g.size())) return std::vector<Tensor>(g.size());
  g_columnwise = make_operands(g_for_wgrad, ctx.saved.call, g);
  return wgrad(ctx, g_columnwise);
}

}  // namespace

std::vector<Tensor> GroupedLinearFunction::Saved::tensors() const {
  std::vector<Tensor> all = weights;
  for (const Operands* operands : {&x_columnwise, &w_columnwise}) {
    for (const Operand& operand : *operands) {
      if (!operand.defined()) continue;
      for (const Tensor& tensor : operand.tensors()) all.push_back(tensor);
    }
  }
  return all;
}

Tensor GroupedLinearFunction::forward(SavedContext& ctx, const Tensor& x,
                                      const std::vector<Tensor>& weights,
                                      const std::vector<Tensor>& biases,
                                      const GroupedLinearCall& call) {
  require_input(x, weights, call);
  const Tensor packed = flatten_tokens(x);
  const Operands x_rowwise =
      make_operands(x_for_fprop, call, ops::split_groups(packed, call.splits));
  Operands w_rowwise;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    w_rowwise.push_back(weight_for_fprop(call.experts[i], weights[i], ctx.needs_grad(0)));
  }
  const bool is_row = call.experts[0].split.is_row();
  const Tensor y =
      grouped_operand_gemm(x_rowwise, w_rowwise, x.dtype(), call.experts[0].params->mm_fprop,
                           is_row ? std::vector<Tensor>() : biases);
  if (ctx.recording()) {
    save(ctx, packed, weights, biases, call);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      LinearQuantizers& quantizers = *call.experts[i].quantizers;
      quantizers.x.note_use({&x_rowwise[i], &ctx.saved.x_columnwise[i]});
      quantizers.w.note_use({&w_rowwise[i], &ctx.saved.w_columnwise[i]});
    }
  }
  return is_row ? reduce_output(call, y, biases) : y;
}

std::vector<Tensor> GroupedLinearFunction::backward(SavedContext& ctx,
                                                    const std::vector<Tensor>& grads) {
  const BackwardScope scope;
  const Saved& saved = ctx.saved;
  const std::size_t count = saved.weights.size();
  const LinearSplit& split = saved.call.experts[0].split;
  const std::vector<Tensor> g = ops::split_groups(flatten_tokens(grads[0]), saved.call.splits);
  Operands g_rowwise(count);
  Operands g_columnwise(count);
  Work dx{Tensor()};
  if (ctx.needs_grad(0)) {
    g_rowwise = make_operands(g_for_dgrad, saved.call, g);
    const Tensor partial = dgrad(saved, g_rowwise);
    dx = split.is_column() ? split.group->all_reduce_async(partial) : Work(partial);
  }
  std::vector<Tensor> results{Tensor()};
  for (const Tensor& dw : weight_gradients(ctx, g, g_columnwise)) results.push_back(dw);
  for (std::size_t i = 0; i < count; ++i) {
    saved.call.experts[i].quantizers->g.note_use({&g_rowwise[i], &g_columnwise[i]});
  }
  for (std::size_t i = 0; i < saved.bias_dtypes.size(); ++i) {
    const bool wanted = ctx.needs_grad(1 + count + i);
    results.push_back(wanted ? ops::cast(ops::sum_rows(g[i]), saved.bias_dtypes[i]) : Tensor());
  }
  results[0] = dx.wait();
  return results;
}

}  // namespace kitchen::modules
