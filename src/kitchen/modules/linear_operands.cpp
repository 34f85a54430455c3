#include "kitchen/modules/linear_operands.h"

#include "kitchen/base/error.h"
#include "kitchen/ops/elementwise.h"

namespace kitchen::modules {

Tensor flatten_tokens(const Tensor& x) {
  std::int64_t tokens = 1;
  for (std::int64_t i = 0; i + 1 < x.rank(); ++i) tokens *= x.dim(i);
  const Tensor packed = x.is_contiguous() ? x : ops::contiguous(x);
  return packed.view({tokens, x.dim(-1)});
}

namespace {

Operand weight_rowwise(const LinearCall& call, const Tensor& weight) {
  return make_operand(weight, call.params->w_params, call.params->mm_fprop, /*columnwise=*/false,
                      {call.module, "w", "fprop"}, call.quantizers->w.call(false));
}

/// Refreshes or checks the cache. A weight that changed under kept codes would give wrong results;
/// an operand that is not quantized is the weight itself and cannot grow old.
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

}  // namespace

Operand weight_for_fprop(const LinearCall& call, const Tensor& weight, bool needs_columnwise) {
  if (!call.cache) return weight_rowwise(call, weight);
  update_cache(call, weight, needs_columnwise);
  return call.cache->rowwise;
}

Operand weight_columnwise(const LinearCall& call, const Tensor& weight) {
  return make_operand(weight.transpose(0, 1), call.params->w_params, call.params->mm_dgrad,
                      /*columnwise=*/true, {call.module, "w", "dgrad"},
                      call.quantizers->w.call(true));
}

Operand x_for_fprop(const LinearCall& call, const Tensor& x) {
  return make_operand(flatten_tokens(x), call.params->x_params, call.params->mm_fprop,
                      /*columnwise=*/false, {call.module, "x", "fprop"},
                      call.quantizers->x.call(false));
}

Operand x_for_wgrad(const LinearCall& call, const Tensor& x) {
  return make_operand(
      flatten_tokens(x).transpose(0, 1), call.params->x_params, call.params->mm_wgrad,
      /*columnwise=*/true, {call.module, "x", "wgrad"}, call.quantizers->x.call(true));
}

Tensor require_main_grad(const LinearCall& call, const autograd::VariableMeta* leaf) {
  if (leaf != nullptr && leaf->main_grad.defined()) return leaf->main_grad;
  throw AssertionError(
      call.module +
      ".weight: gradient_accumulation_fusion is on but the parameter has no "
      "main_grad; allocate it (float32, the weight's shape) before backward, or turn "
      "the option off");
}

Operand g_for_dgrad(const LinearCall& call, const Tensor& g) {
  return make_operand(g, call.params->g_params, call.params->mm_dgrad, /*columnwise=*/false,
                      {call.module, "g", "dgrad"}, call.quantizers->g.call(false));
}

Operand g_for_wgrad(const LinearCall& call, const Tensor& g) {
  return make_operand(g.transpose(0, 1), call.params->g_params, call.params->mm_wgrad,
                      /*columnwise=*/true, {call.module, "g", "wgrad"},
                      call.quantizers->g.call(true));
}

}  // namespace kitchen::modules
