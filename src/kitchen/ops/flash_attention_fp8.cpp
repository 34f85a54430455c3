#include "kitchen/ops/flash_attention_fp8.h"

#include "kitchen/base/error.h"
#include "kitchen/ops/operand_checks.h"

#include <cmath>

namespace kitchen::ops {

namespace {

void require_codes(const char* op, const char* name, const QuantizedMatrix& x, DType dtype) {
  require_dtype(op, name, x.codes, dtype);
  if (x.codes.rank() == 4 && x.spec.granularity.is_per_tensor() && !x.spec.has_byte_scales()) {
    return;
  }
  throw ValueError(std::string(op) + ": " + name + " has codes " + to_string(x.codes.shape()) +
                   " of '" + to_string(x.spec) +
                   "'; expected [b, heads, s, d] with one float32 scale a head");
}

/// Codes [b, heads, s, d] in the order of the attention ops, [s, b, heads, d].
Tensor rows_of(const QuantizedMatrix& x) {
  return x.codes.permute({2, 0, 1, 3});
}

AttentionRows attention_rows(const QuantizedMatrix& x) {
  return {rows_of(x).const_view(), x.scale_inv.view({x.codes.dim(0), x.codes.dim(1)}).const_view()};
}

void check_operands(const char* op, const QuantizedMatrix& q, const QuantizedMatrix& k,
                    const QuantizedMatrix& v, DType out_dtype,
                    const FlashAttentionOptions& options) {
  require_codes(op, "q", q, DType::float8_e4m3);
  require_codes(op, "k", k, DType::float8_e4m3);
  require_codes(op, "v", v, DType::float8_e4m3);
  check_flash_attention_shapes(op, rows_of(q), rows_of(k), rows_of(v), options);
  if (!is_high_precision(out_dtype)) {
    throw TypeError(std::string(op) + ": output dtype " + to_string(out_dtype) +
                    "; expected float32, float16 or bfloat16");
  }
  int exponent = 0;
  const bool is_power_of_2 = std::frexp(options.p_scale, &exponent) == 0.5f;
  if (is_power_of_2 && options.p_scale <= 256.0f) return;
  throw ValueError(std::string(op) + ": p_scale is " + std::to_string(options.p_scale) +
                   "; expected a power of two up to 256, the largest that E4M3 holds");
}

}  // namespace

FlashAttentionResult flash_attention_fp8_forward(const QuantizedMatrix& q, const QuantizedMatrix& k,
                                                 const QuantizedMatrix& v, DType out_dtype,
                                                 const FlashAttentionOptions& options) {
  const char* op = "flash_attention_fp8_forward";
  check_operands(op, q, k, v, out_dtype, options);
  const ContextPtr& context = common_context(op, {&q.codes, &k.codes, &v.codes});
  const Shape shape = rows_of(q).shape();
  FlashAttentionResult result;
  result.o = Tensor::empty(context, shape, out_dtype);
  result.lse = Tensor::empty(context, {shape[1], shape[2], shape[0]}, DType::float32);
  context->launch<FlashAttentionFp8ForwardKernel>({}, attention_rows(q), attention_rows(k),
                                                  attention_rows(v), result.o.kernel_view(),
                                                  result.lse.kernel_view(), options);
  return result;
}

FlashAttentionGradients flash_attention_fp8_backward(
    const Tensor& dout, const QuantizedMatrix& dout_codes, const QuantizedMatrix& q,
    const QuantizedMatrix& k, const QuantizedMatrix& v, const Tensor& o, const Tensor& lse,
    const FlashAttentionOptions& options) {
  const char* op = "flash_attention_fp8_backward";
  check_operands(op, q, k, v, o.dtype(), options);
  require_codes(op, "dout_codes", dout_codes, DType::float8_e5m2);
  require_shape(op, "dout_codes", dout_codes.codes, q.codes.shape());
  const Shape shape = rows_of(q).shape();
  require_shape(op, "o", o, shape);
  require_dtype(op, "dout", dout, o.dtype());
  require_shape(op, "dout", dout, shape);
  require_dtype(op, "lse", lse, DType::float32);
  require_shape(op, "lse", lse, {shape[1], shape[2], shape[0]});
  const ContextPtr& context = common_context(op, {&dout, &q.codes, &k.codes, &v.codes, &o, &lse});
  const Tensor delta = Tensor::empty(context, lse.shape(), DType::float32);
  FlashAttentionGradients gradients;
  gradients.dq = Tensor::empty(context, shape, o.dtype());
  gradients.dk = Tensor::empty(context, rows_of(k).shape(), o.dtype());
  gradients.dv = Tensor::empty(context, gradients.dk.shape(), o.dtype());
  context->launch<FlashAttentionFp8BackwardKernel>(
      {}, with_unit_last_stride(dout).const_view(), attention_rows(dout_codes), attention_rows(q),
      attention_rows(k), attention_rows(v), with_unit_last_stride(o).const_view(),
      dense(lse).const_view(), delta.kernel_view(), gradients.dq.kernel_view(),
      gradients.dk.kernel_view(), gradients.dv.kernel_view(), options);
  return gradients;
}

}  // namespace kitchen::ops
