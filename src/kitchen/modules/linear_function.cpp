#include "kitchen/modules/linear_function.h"

#include "kitchen/base/error.h"
#include "kitchen/ops/elementwise.h"

namespace kitchen::modules {

namespace {

/// [tokens, features] of a tensor with any number of leading dimensions.
Tensor flatten_tokens(const Tensor& x) {
  std::int64_t tokens = 1;
  for (std::int64_t i = 0; i + 1 < x.rank(); ++i) tokens *= x.dim(i);
  const Tensor packed = x.is_contiguous() ? x : ops::contiguous(x);
  return packed.view({tokens, x.dim(-1)});
}

Operand weight_rowwise(const LinearCall& call, const Tensor& weight) {
  return make_operand(weight, call.params->w_params, call.params->mm_fprop, /*columnwise=*/false,
                      {call.module, "w", "fprop"}, call.quantizers->w.call(false));
}

Operand weight_columnwise(const LinearCall& call, const Tensor& weight) {
  return make_operand(weight.transpose(0, 1), call.params->w_params, call.params->mm_dgrad,
                      /*columnwise=*/true, {call.module, "w", "dgrad"},
                      call.quantizers->w.call(true));
}

/// Refreshes or checks the cache. A weight that changed under kept codes would give wrong results; an operand
/// that is not quantized is the weight itself and cannot grow old.
void update_cache(const LinearCall& call, const Tensor& weight, bool needs_columnwise) {
  WeightCache& cache = *call.cache;
  if (call.refresh_cache) cache = WeightCache();
  const bool holds_codes = cache.rowwise.quantized || cache.columnwise.quantized;
  if (!holds_codes) {
    cache.version = weight.version();
  } else if (cache.version != weight.version()) {
    throw RuntimeError(call.module +
                       ": the weight changed while its quantized copy was kept; call "
                       "set_is_first_microbatch() after each update");
  }
  if (!cache.rowwise.quantized) cache.rowwise = weight_rowwise(call, weight);
  if (needs_columnwise && !cache.columnwise.quantized) {
    cache.columnwise = weight_columnwise(call, weight);
  }
}

void require_main_grad(const LinearCall& call, const autograd::VariableMeta* leaf) {
  if (leaf != nullptr && leaf->main_grad.defined()) return;
  throw AssertionError(call.module +
                       ".weight: gradient_accumulation_fusion is on but the parameter has no "
                       "main_grad; allocate it (float32, the weight's shape) before backward, or turn "
                       "the option off");
}

}  // namespace

std::vector<Tensor> LinearFunction::Saved::tensors() const {
  std::vector<Tensor> all = x_columnwise.tensors();
  all.push_back(weight);
  for (const Tensor& tensor : w_columnwise.tensors()) all.push_back(tensor);
  return all;
}

Tensor LinearFunction::forward(autograd::FunctionContext<Saved>& ctx, const Tensor& x,
                               const Tensor& weight, const Tensor& bias, const LinearCall& call) {
  const QLinearParams& params = *call.params;
  if (x.dim(-1) != weight.dim(1)) {
    throw ValueError(call.module + ": the input's last size is " + std::to_string(x.dim(-1)) +
                     ", the weight expects in_features = " + std::to_string(weight.dim(1)));
  }
  const Tensor tokens = flatten_tokens(x);
  LinearQuantizers& quantizers = *call.quantizers;
  const bool needs_dgrad = ctx.needs_grad(0);
  const bool needs_wgrad = ctx.needs_grad(1);
  const Operand x_rowwise = make_operand(tokens, params.x_params, params.mm_fprop, false,
                                         {call.module, "x", "fprop"}, quantizers.x.call(false));
  if (call.cache) update_cache(call, weight, needs_dgrad);
  const Operand w_rowwise = call.cache ? call.cache->rowwise : weight_rowwise(call, weight);
  const Tensor y = operand_gemm(x_rowwise, w_rowwise, x.dtype(), params.mm_fprop, 1.0f, bias);
  if (ctx.recording()) {
    Saved& saved = ctx.saved;
    saved.weight = weight;
    saved.call = call;
    saved.x_shape = x.shape();
    saved.x_dtype = x.dtype();
    saved.has_bias = bias.defined();
    if (bias.defined()) saved.bias_dtype = bias.dtype();
    if (needs_dgrad && call.cache) saved.w_columnwise = call.cache->columnwise;
    if (needs_wgrad) {
      saved.x_columnwise = make_operand(tokens.transpose(0, 1), params.x_params, params.mm_wgrad,
                                        true, {call.module, "x", "wgrad"},
                                        quantizers.x.call(true));
    }
    quantizers.x.note_use({&x_rowwise, &saved.x_columnwise});
    // Codes from the cache count in each step that uses them, whoever filled it.
    quantizers.w.note_use({&w_rowwise, &saved.w_columnwise});
  }
  Shape shape = x.shape();
  shape.back() = weight.dim(0);
  return y.view(shape);
}

std::vector<Tensor> LinearFunction::backward(autograd::FunctionContext<Saved>& ctx,
                                             const std::vector<Tensor>& grads) {
  Saved& saved = ctx.saved;
  const LinearCall& call = saved.call;
  const QLinearParams& params = *call.params;
  LinearQuantizers& quantizers = *call.quantizers;
  const Tensor g = flatten_tokens(grads[0]);
  Operand g_rowwise;
  Operand g_columnwise;
  Tensor dx;
  if (ctx.needs_grad(0)) {
    g_rowwise = make_operand(g, params.g_params, params.mm_dgrad, false,
                             {call.module, "g", "dgrad"}, quantizers.g.call(false));
    const Operand w_columnwise = saved.w_columnwise.defined()
                                     ? saved.w_columnwise
                                     : weight_columnwise(call, saved.weight);
    quantizers.w.note_use({&w_columnwise});
    dx = operand_gemm(g_rowwise, w_columnwise, saved.x_dtype, params.mm_dgrad).view(saved.x_shape);
  }
  Tensor dw;
  if (ctx.needs_grad(1)) {
    g_columnwise = make_operand(g.transpose(0, 1), params.g_params, params.mm_wgrad, true,
                                {call.module, "g", "wgrad"}, quantizers.g.call(true));
    autograd::VariableMeta* leaf = ctx.leaf(1).get();
    if (call.fuse_wgrad_accumulation) {
      require_main_grad(call, leaf);
      operand_gemm_accumulate(g_columnwise, saved.x_columnwise, leaf->main_grad, params.mm_wgrad);
      leaf->grad_added_to_main_grad = true;
    } else {
      dw = operand_gemm(g_columnwise, saved.x_columnwise, saved.weight.dtype(), params.mm_wgrad);
    }
  }
  quantizers.g.note_use({&g_rowwise, &g_columnwise});
  Tensor db;
  if (saved.has_bias && ctx.needs_grad(2)) db = ops::cast(ops::sum_rows(g), saved.bias_dtype);
  return {dx, dw, db};
}

}  // namespace kitchen::modules
