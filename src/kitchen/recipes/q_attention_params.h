#pragma once

#include "kitchen/recipes/attention_quantizer.h"
#include "kitchen/recipes/evidence.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace kitchen {

/// Quantization of unfused attention: one quantizer for the scores, one for the context.
struct QAttentionParams {
  std::shared_ptr<const AttentionQuantizer> quantizer_bmm1;  ///< scores: Q·Kᵀ. Never null.
  std::shared_ptr<const AttentionQuantizer> quantizer_bmm2;  ///< context: P·V. Never null.

  std::string name;
  std::optional<std::int64_t> number;  ///< recipe_idx, where one is publicly known
  Evidence evidence = Evidence::user;

  [[nodiscard]] const AttentionQuantizer& get_quantizer(bool is_bmm2) const {
    return is_bmm2 ? *quantizer_bmm2 : *quantizer_bmm1;
  }
  [[nodiscard]] std::string repr() const;
};

/// Compares the quantizers. Name, number and evidence are labels.
bool operator==(const QAttentionParams& a, const QAttentionParams& b);
inline bool operator!=(const QAttentionParams& a, const QAttentionParams& b) {
  return !(a == b);
}

}  // namespace kitchen
