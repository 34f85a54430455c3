#pragma once

#include "kitchen/base/tensor.h"
#include "kitchen/recipes/q_attention_params.h"

#include <memory>
#include <string>

namespace kitchen {

/// Batched product alpha·a·b of unfused attention with quantized operands, a [B, m, k], b [B, k, n].
///
/// Each operand is quantized along the dimension that its product reduces, one (batch, head) slice at a time;
/// alpha multiplies the fp32 accumulator. Keeps the high-precision inputs and quantizes them again in
/// backward: da = alpha·g·bᵀ reduces n, db = alpha·aᵀ·g reduces m.
struct QuantizedBMM {
  /// @param is_bmm2 false: scores (quantizer_bmm1, a = Q, b = Kᵀ); true: context (quantizer_bmm2, a = P, b = V).
  /// @param grad_enabled false: saves nothing.
  /// @param params null: plain product.
  /// @returns [B, m, n] in a's dtype.
  static Tensor apply(const Tensor& a, const Tensor& b, float alpha, bool is_bmm2, bool grad_enabled,
                      std::int64_t layer_number,
                      const std::shared_ptr<const QAttentionParams>& params,
                      const std::string& module = "QuantizedBMM");
};

}  // namespace kitchen
