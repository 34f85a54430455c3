#pragma once

#include "kitchen/config/enums.h"
#include "kitchen/modules/module.h"

#include <optional>

namespace kitchen {

/// Scale, mask and softmax of attention scores, in fp32 inside.
///
/// One kernel does all three, so Megatron's fused and unfused path are the same here. Where Megatron would take
/// its fused kernel, a causal layer ignores the user's mask: with fusion on, half-precision scores,
/// 16 < sk <= 4096, and sq, sk and b·np multiples of 4.
class FusedScaleMaskSoftmax : public Module {
 public:
  /// @throws AssertionError if fp16 and bf16 are both set, or if `scale` is set without fp32 softmax.
  FusedScaleMaskSoftmax(bool input_in_fp16, bool input_in_bf16, AttnMaskType attn_mask_type,
                        bool scaled_masked_softmax_fusion, bool softmax_in_fp32,
                        std::optional<double> scale);

  bool input_in_half;  ///< fp16 or bf16 is set
  AttnMaskType attn_mask_type;
  bool scaled_masked_softmax_fusion;
  bool softmax_in_fp32;
  std::optional<double> scale;
  float masked_value = -10000.0f;  ///< Ext: -INFINITY makes a fully masked row 0 instead of uniform

  /// @param scores [b, np, sq, sk]. @param mask boolean, true = masked, broadcastable; nullopt: the mask type
  ///        decides: causal with sq > 1 masks the future, all else masks nothing.
  /// @throws AssertionError "causal mask is only for self attention" if a generated mask meets sq != sk.
  Tensor forward(const Tensor& scores, const std::optional<Tensor>& mask);

  [[nodiscard]] std::string class_name() const override { return "FusedScaleMaskSoftmax"; }

 private:
  [[nodiscard]] bool takes_fused_path(const Tensor& scores) const;
};

}  // namespace kitchen
