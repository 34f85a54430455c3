#include "kitchen/recipes/q_flash_attention_params.h"

#include <fmt/format.h>

#include <tuple>

namespace kitchen {

std::string QFlashAttentionParams::repr() const {
  return fmt::format(
      "{}\n  backend: {}\n  qk: {}  pv: {}\n  dv: {}  dp: {}  dq: {}  dk: {}\n  softmax: {}"
      "\n  p_scale: {}",
      name.empty() ? "QFlashAttentionParams" : name, backend, qk_dot_precisions, pv_dot_precisions,
      dv_dot_precisions, dp_dot_precisions, dq_dot_precisions, dk_dot_precisions,
      use_natural_transcendental_func ? "natural" : "base_2", p_scale);
}

bool operator==(const QFlashAttentionParams& a, const QFlashAttentionParams& b) {
  const auto fields = [](const QFlashAttentionParams& p) {
    return std::tie(p.backend, p.qk_dot_precisions, p.pv_dot_precisions,
                    p.use_natural_transcendental_func, p.dv_dot_precisions, p.dp_dot_precisions,
                    p.dq_dot_precisions, p.dk_dot_precisions, p.p_scale);
  };
  return fields(a) == fields(b);
}

}  // namespace kitchen
