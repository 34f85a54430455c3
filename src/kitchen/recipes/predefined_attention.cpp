#include "kitchen/recipes/predefined.h"

namespace kitchen {

namespace {

using QuantizerPtr = std::shared_ptr<const AttentionQuantizer>;

QuantizerParams operand(const char* format, Scaling scaling) {
  QuantizerParams params;
  params.format = format;
  params.scaling = scaling;
  return params;
}

std::shared_ptr<const QAttentionParams> attention(const char* name,
                                                  std::optional<std::int64_t> number,
                                                  Evidence evidence,
                                                  const QuantizerPtr& quantizer) {
  return std::make_shared<const QAttentionParams>(
      QAttentionParams{quantizer, quantizer, name, number, evidence});
}

QuantizerPtr tensor_fp8() {
  return std::make_shared<const TensorBmmQuantizer>(
      operand("e4m3", Scaling::tensor_current), operand("e5m2", Scaling::tensor_current),
      MatmulParams{true, Accumulate::fp32, MatmulBackend::automatic});
}

QuantizerPtr mx_fp8() {
  const QuantizerParams e4m3 = operand("e4m3", Scaling::mx32);
  return std::make_shared<const MxBmmQuantizer>(
      e4m3, e4m3, MatmulParams{true, Accumulate::fp32, MatmulBackend::emulation});
}

std::shared_ptr<const QFlashAttentionParams> bf16_flash(const char* name, bool natural) {
  QFlashAttentionParams params;
  params.use_natural_transcendental_func = natural;
  params.name = name;
  params.evidence = Evidence::public_source;
  return std::make_shared<const QFlashAttentionParams>(std::move(params));
}

std::shared_ptr<const QFlashAttentionParams> fp8_flash() {
  QFlashAttentionParams params;
  params.backend = "kitchen";
  params.qk_dot_precisions = "e4m3@e4m3";
  params.pv_dot_precisions = "e4m3@e4m3";
  params.dv_dot_precisions = "e4m3@e5m2";
  params.dp_dot_precisions = "e5m2@e4m3";
  params.dq_dot_precisions = "e5m2@e4m3";
  params.dk_dot_precisions = "e5m2@e4m3";
  // 256 is the largest power of two that E4M3 holds, and P is at most 1 (numerics.md S7.4).
  params.p_scale = 256.0;
  params.name = "fa_fp8_e4m3_base_2";
  params.evidence = Evidence::ours;
  return std::make_shared<const QFlashAttentionParams>(std::move(params));
}

}  // namespace

const std::vector<std::shared_ptr<const QAttentionParams>>& predefined_attention_recipes() {
  static const std::vector<std::shared_ptr<const QAttentionParams>> recipes = {
      attention("bf16", 1, Evidence::public_source, std::make_shared<const UnquantizedBmm>()),
      attention("fp8_cs", {}, Evidence::ours, tensor_fp8()),
      attention("mxfp8_emulation", 6001, Evidence::public_source, mx_fp8()),
  };
  return recipes;
}

const std::vector<std::shared_ptr<const QFlashAttentionParams>>& predefined_flash_recipes() {
  static const std::vector<std::shared_ptr<const QFlashAttentionParams>> recipes = {
      bf16_flash("triton_fa_bf16_for_all_base_2", false),
      bf16_flash("triton_fa_bf16_for_all_natural", true),
      fp8_flash(),
  };
  return recipes;
}

}  // namespace kitchen
