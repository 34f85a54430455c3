#include "kitchen/analysis/operand_facts.h"

#include <fmt/format.h>

namespace kitchen::analysis {

namespace {

int format_bits(const std::string& format) {
  return format == "e2m1" ? 4 : 8;
}

std::string block_text(Scaling scaling) {
  switch (scaling) {
    case Scaling::none:
      return "-";
    case Scaling::tensor_current:
    case Scaling::tensor_delayed:
      return "whole tensor";
    case Scaling::row:
      return "one row";
    case Scaling::block1x128:
      return "1x128";
    case Scaling::block128x128:
      return "128x128";
    case Scaling::mx32:
      return "1x32";
    case Scaling::nvfp4_1d:
      return "1x16";
    case Scaling::nvfp4_2d:
      return "16x16";
  }
  return "-";
}

std::string float_scale_text(const QuantizerParams& params) {
  std::string text = "float32";
  if (params.convention == BlockConvention::deepgemm) {
    return text + (params.pow2 ? ", power of two rounded up" : ", amax at least 1e-4");
  }
  if (params.pow2) text += ", power of two";
  if (params.eps != 0.0) text += fmt::format(", amax at least {}", params.eps);
  return text;
}

std::string scale_text(const QuantizerParams& params) {
  switch (params.scaling) {
    case Scaling::none:
      return "-";
    case Scaling::tensor_delayed:
      return fmt::format("{}, from the last {} steps", float_scale_text(params), params.window);
    case Scaling::mx32:
      return params.mx_scale == MxScaleRule::roundup ? "e8m0, rounded up" : "e8m0, rounded down";
    case Scaling::nvfp4_1d:
    case Scaling::nvfp4_2d:
      return "e4m3, and one float32 a tensor";
    default:
      return float_scale_text(params);
  }
}

/// Bits an element where the scale's share is a number, else what the share depends on.
std::string bits_text(const QuantizerParams& params) {
  const int bits = format_bits(params.format);
  switch (params.scaling) {
    case Scaling::none:
      return "16 (bf16), 32 (fp32)";
    case Scaling::tensor_current:
    case Scaling::tensor_delayed:
      return fmt::format("{} + 32 a tensor", bits);
    case Scaling::row:
      return fmt::format("{} + 32 a row", bits);
    case Scaling::block1x128:
      return fmt::format("{}", bits + 32.0 / 128);
    case Scaling::block128x128:
      return fmt::format("{:.3f}", bits + 32.0 / (128 * 128));
    case Scaling::mx32:
      return fmt::format("{}", bits + 8.0 / 32);
    // The scale of a 16x16 block is stored once a row, as the hardware reads it.
    case Scaling::nvfp4_1d:
    case Scaling::nvfp4_2d:
      return fmt::format("{}", bits + 8.0 / 16);
  }
  return "-";
}

}  // namespace

OperandFacts operand_facts(const QuantizerParams& params, bool columnwise) {
  OperandFacts facts;
  facts.format = params.quantized() ? params.format : "compute dtype";
  facts.block = block_text(params.scaling);
  facts.scale = scale_text(params);
  facts.rounding = "nearest even";
  if (params.stochastic) facts.rounding = "stochastic";
  if (params.rht && columnwise) facts.rounding += ", after a Hadamard transform of 16";
  if (!params.quantized()) facts.rounding = "-";
  facts.bits = bits_text(params);
  return facts;
}

std::string native_hardware(const QuantizerParams& params, MatmulBackend backend) {
  if (backend == MatmulBackend::emulation) {
    return "none: the recipe asks for emulation, so operands are decoded and multiplied in high "
           "precision";
  }
  switch (params.scaling) {
    case Scaling::none:
      return "any GPU with bf16 tensor cores (sm_80 and later)";
    case Scaling::tensor_current:
    case Scaling::tensor_delayed:
      return "fp8 tensor cores (sm_89, sm_90, sm_100)";
    case Scaling::row:
      return params.format == "int8" ? "int8 tensor cores (sm_80 and later)"
                                     : "fp8 tensor cores with row scales (sm_90, sm_100)";
    case Scaling::block1x128:
    case Scaling::block128x128:
      return "fp8 tensor cores with block scales in software (sm_90)";
    case Scaling::mx32:
      return "block-scaled tensor cores (sm_100 and later)";
    case Scaling::nvfp4_1d:
    case Scaling::nvfp4_2d:
      return "block-scaled fp4 tensor cores (sm_100 and later)";
  }
  return "-";
}

}  // namespace kitchen::analysis
