#pragma once

#include "kitchen/config/enums.h"
#include "kitchen/modules/module.h"

#include <optional>

namespace kitchen {

/// Scale, mask and softmax of attention scores, in fp32 inside.
///
/// One kernel does all three, so the fused and the unfused path of Megatron are the same here and
/// `masked_softmax_fusion` changes nothing but which masks are honoured.
class FusedScaleMaskSoftmax : public Module {
 public:
  /// @throws AssertionError if fp16 and bf16 are both set, or if `scale` is set without fp32 softmax.
  FusedScaleMaskSoftmax(bool input_in_fp16, bool input_in_bf16, AttnMaskType attn_mask_type,
                        bool scaled_masked_softmax_fusion, bool softmax_in_fp32,
                        std::optional<double> scale);

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
};

}  // namespace kitchen
