#include "kitchen/modules/fused_scale_mask_softmax.h"

#include "kitchen/autograd/nn_functions.h"
#include "kitchen/base/error.h"

namespace kitchen {

FusedScaleMaskSoftmax::FusedScaleMaskSoftmax(bool input_in_fp16, bool input_in_bf16,
                                             AttnMaskType mask_type, bool fusion, bool in_fp32,
                                             std::optional<double> score_scale)
    : input_in_half(input_in_fp16 || input_in_bf16),
      attn_mask_type(mask_type),
      scaled_masked_softmax_fusion(fusion),
      softmax_in_fp32(in_fp32),
      scale(score_scale) {
  if (input_in_fp16 && input_in_bf16) {
    throw AssertionError("FusedScaleMaskSoftmax: both fp16 and bf16 are set; choose one");
  }
  if (scale && !softmax_in_fp32) {
    throw AssertionError("FusedScaleMaskSoftmax: scaled scores need softmax in fp32; set "
                         "attention_softmax_in_fp32");
  }
}

bool FusedScaleMaskSoftmax::takes_fused_path(const Tensor& scores) const {
  const std::int64_t sq = scores.dim(2);
  const std::int64_t sk = scores.dim(3);
  const bool sizes_fit = sk > 16 && sk <= 4096 && sq % 4 == 0 && sk % 4 == 0 &&
                         scores.dim(0) * scores.dim(1) % 4 == 0;
  const bool is_half = input_in_half && scores.dtype() != DType::float32;
  return scaled_masked_softmax_fusion && is_half && sizes_fit;
}

Tensor FusedScaleMaskSoftmax::forward(const Tensor& scores, const std::optional<Tensor>& mask) {
  const std::int64_t sq = scores.dim(2);
  const std::int64_t sk = scores.dim(3);
  const bool is_causal = attn_mask_type == AttnMaskType::causal;
  ops::SoftmaxOptions options;
  options.scale = static_cast<float>(scale.value_or(1.0));
  options.masked_value = masked_value;
  const bool generates_mask = is_causal && sq > 1 && (!mask || takes_fused_path(scores));
  if (generates_mask) {
    if (sq != sk) {
      throw AssertionError("FusedScaleMaskSoftmax: causal mask is only for self attention; found " +
                           std::to_string(sq) + " queries and " + std::to_string(sk) + " keys");
    }
    options.causal = true;
    return autograd::softmax(scores, Tensor(), options);
  }
  return autograd::softmax(scores, mask.value_or(Tensor()), options);
}

}  // namespace kitchen
