#pragma once

#include "kitchen/recipes/evidence.h"

#include <string>

namespace kitchen {

/// Numerics of fused (flash) attention. A dot's precisions are "<lhs>@<rhs>", each "bf16", "e4m3"
/// or "e5m2".
///
/// fp8 operands have one current scale a head (numerics.md S7.4).
struct QFlashAttentionParams {
  std::string backend = "triton";
  std::string qk_dot_precisions = "bf16@bf16";  ///< S = Q·Kᵀ
  std::string pv_dot_precisions = "bf16@bf16";  ///< O = P·V
  /// true: exp; false: exp2 with log2(e) folded into the softmax scale.
  bool use_natural_transcendental_func = false;

  std::string dv_dot_precisions = "bf16@bf16";  ///< dV = Pᵀ·dO
  std::string dp_dot_precisions = "bf16@bf16";  ///< dP = dO·Vᵀ
  std::string dq_dot_precisions = "bf16@bf16";  ///< dQ = dS·K
  std::string dk_dot_precisions = "bf16@bf16";  ///< dK = dSᵀ·Q
  /// Factor on P before its cast; a power of two. 1 where P stays bf16.
  double p_scale = 1.0;

  std::string name;
  Evidence evidence = Evidence::user;

  [[nodiscard]] std::string repr() const;
};

/// Compares what is computed. Name and evidence are labels.
bool operator==(const QFlashAttentionParams& a, const QFlashAttentionParams& b);
inline bool operator!=(const QFlashAttentionParams& a, const QFlashAttentionParams& b) {
  return !(a == b);
}

}  // namespace kitchen
