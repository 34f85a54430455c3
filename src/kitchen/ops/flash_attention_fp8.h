#pragma once

#include "kitchen/formats/quantized_matrix.h"
#include "kitchen/ops/flash_attention.h"

/// @file  flash_attention_fp8.h
/// @brief Flash attention on fp8 operands with one scale for each batch index and head
/// (numerics.md S7.4).

namespace kitchen::ops {

/// Rows [s, b, heads, d] and, where they are codes, the factors [b, heads] that undo them.
struct AttentionRows {
  ConstView rows;
  ConstView scale_inv;  ///< float32; undefined: the rows are the values

  [[nodiscard]] float factor(std::int64_t batch, std::int64_t head) const {
    if (!scale_inv.defined()) return 1.0f;
    return static_cast<const float*>(
        scale_inv.data)[batch * scale_inv.strides[0] + head * scale_inv.strides[1]];
  }
};

/// Kernel: as FlashAttentionForwardKernel on E4M3 codes. t = acc·(scale_q·scale_k·scale);
/// p·p_scale is cast to E4M3 relative to the running maximum, the sum keeps the fp32 p;
/// o = acc·scale_v / (p_scale·sum), rounded once to o's dtype. Bounded; variant "exact" computes in
/// fp64 one query at a time with p relative to the row's maximum.
struct FlashAttentionFp8ForwardKernel {
  static constexpr const char* kName = "flash_attention_fp8_forward";
  using Fn = void (*)(const Stream&, const AttentionRows& q, const AttentionRows& k,
                      const AttentionRows& v, View o, View lse, const FlashAttentionOptions&);
};

/// Kernel: as FlashAttentionBackwardKernel on E4M3 codes of q, k, v and E5M2 codes of dout; `delta`
/// is made of the dout that is not quantized. p·p_scale is cast to E4M3 for dv. dS is rounded to
/// o's dtype and then cast to E5M2 with one scale for each batch index, query head and sequence,
/// from its exact amax, which takes a first pass over the scores.
struct FlashAttentionFp8BackwardKernel {
  static constexpr const char* kName = "flash_attention_fp8_backward";
  using Fn = void (*)(const Stream&, ConstView dout, const AttentionRows& dout_codes,
                      const AttentionRows& q, const AttentionRows& k, const AttentionRows& v,
                      ConstView o, ConstView lse, View delta, View dq, View dk, View dv,
                      const FlashAttentionOptions&);
};

/// @param q codes [b, np, sq, d] with one scale a slice, e4m3.
/// @param k,v the same [b, ng, sk, d].
/// @returns o [sq, b, np, d] in `out_dtype`, lse [b, np, sq].
/// @throws TypeError if codes are not e4m3 or `out_dtype` is no high-precision dtype; ValueError on
///         another granularity than one scale a slice, on p_scale, and as flash_attention_forward.
FlashAttentionResult flash_attention_fp8_forward(const QuantizedMatrix& q, const QuantizedMatrix& k,
                                                 const QuantizedMatrix& v, DType out_dtype,
                                                 const FlashAttentionOptions& options);

/// @param dout [sq, b, np, d], as o. @param dout_codes its codes [b, np, sq, d], e5m2.
/// @returns gradients in o's dtype. Errors as above.
FlashAttentionGradients flash_attention_fp8_backward(
    const Tensor& dout, const QuantizedMatrix& dout_codes, const QuantizedMatrix& q,
    const QuantizedMatrix& k, const QuantizedMatrix& v, const Tensor& o, const Tensor& lse,
    const FlashAttentionOptions& options);

}  // namespace kitchen::ops
