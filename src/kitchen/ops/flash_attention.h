#pragma once

#include "kitchen/base/tensor.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace kitchen::ops {

/// What a flash attention call computes.
struct FlashAttentionOptions {
  float scale = 1.0f;  ///< multiplies q·kᵀ in fp32
  bool causal = true;  ///< bottom-right: query i sees keys j <= i + sk - sq
  /// exp(t - m) if true, else exp2(t·log2 e - m): same exact result, rounded differently (S7.3).
  bool natural_exp = false;
  /// (left, right) window in keys around the diagonal i + sk - sq, -1 = unlimited; (-1, -1) = none;
  /// causal makes right 0. Ext.
  std::pair<std::int64_t, std::int64_t> window{-1, -1};
  /// Packed sequences (Ext): offsets of the sequences in dimension 0, batch must be 1. Empty = not
  /// packed. Tokens past the last offset are neither read nor written by queries or keys (their
  /// output is 0).
  std::vector<std::int64_t> cu_seqlens_q;
  std::vector<std::int64_t> cu_seqlens_k;
  /// Multiplies p before its cast to E4M3, a power of two up to 256. Read on fp8 operands only.
  float p_scale = 256.0f;
};

/// Kernel: q, o [sq, b, np, d]; k, v [sk, b, ng, d] (np a multiple of ng; query head h reads key
/// head h / (np / ng)); lse [b, np, sq] float32 in natural log. Unit stride in d, any other
/// strides; o, lse contiguous. Blocked over keys with running maximum and sum in fp32; the
/// probabilities are rounded to q's dtype for the product with V when that is bfloat16 or float16,
/// the sum keeps fp32, o = acc / sum (S7.3). A row that sees no key, or only scores of -inf, gives
/// 0 and lse -inf. A NaN in a key that is never read (past the offsets) stays out; in a key that
/// the mask hides from some queries of a block only, it may reach the others (0 · NaN). Memory
/// beyond the outputs: O(d·block + block²) a thread. Bounded; the result does not depend on
/// threads.
struct FlashAttentionForwardKernel {
  static constexpr const char* kName = "flash_attention_forward";
  using Fn = void (*)(const Stream&, ConstView q, ConstView k, ConstView v, View o, View lse,
                      const FlashAttentionOptions&);
};

/// Kernel: recomputes p from lse. `delta` [b, np, sq] float32 is workspace: rowsum(dout·o). p for
/// dv and dS = p·(dP - delta) for dq and dk are rounded to q's dtype; each gradient is summed in
/// fp32, times scale, and rounded once; dk, dv sum over the query heads of a group in ascending
/// head order. dq, dk, dv contiguous; rows past the offsets, of queries without a key and of keys
/// without a query are 0. No atomics: bit-reproducible. Memory beyond that: the forward's and fp32
/// sums of dq of one group of heads and one sequence a thread, linear in sq. Bounded.
struct FlashAttentionBackwardKernel {
  static constexpr const char* kName = "flash_attention_backward";
  using Fn = void (*)(const Stream&, ConstView dout, ConstView q, ConstView k, ConstView v,
                      ConstView o, ConstView lse, View delta, View dq, View dk, View dv,
                      const FlashAttentionOptions&);
};

struct FlashAttentionResult {
  Tensor o;    ///< as q, contiguous
  Tensor lse;  ///< [b, np, sq] float32
};

struct FlashAttentionGradients {
  Tensor dq;
  Tensor dk;
  Tensor dv;
};

/// float32 operands are computed without rounding p. Operands whose last stride is not 1 are copied
/// first.
/// @throws TypeError naming the operand and its dtype unless all are float32, float16 or bfloat16
/// alike;
///         ValueError on rank, head counts, head sizes, window or offsets that do not fit.
/// @source FlashAttention-2, arXiv:2307.08691: online softmax by blocks, backward from log-sum-exp.
FlashAttentionResult flash_attention_forward(const Tensor& q, const Tensor& k, const Tensor& v,
                                             const FlashAttentionOptions& options);

/// Refuses q [sq, b, np, d], k and v [sk, b, ng, d] of any dtype, and options, that do not fit
/// together. @throws ValueError as flash_attention_forward.
void check_flash_attention_shapes(const char* op, const Tensor& q, const Tensor& k, const Tensor& v,
                                  const FlashAttentionOptions& options);

/// @param dout,o as q; o and lse from the forward call with the same options. Errors as above.
FlashAttentionGradients flash_attention_backward(const Tensor& dout, const Tensor& q,
                                                 const Tensor& k, const Tensor& v, const Tensor& o,
                                                 const Tensor& lse,
                                                 const FlashAttentionOptions& options);

}  // namespace kitchen::ops
