#pragma once

#include "kitchen/base/host_device.h"
#include "kitchen/formats/codec.h"

/// @file  scale_rule.h
/// @brief From the amax of a block to its scale (numerics.md S3), the same text for host and
/// device.

namespace kitchen::formats {

/// How a block's scale follows from its amax, and how it is stored.
enum class ScaleRule : int {
  float32,         ///< max / amax, fp32 (S3.1)
  float32_pow2,    ///< the same rounded down to a power of two, kept in fp32
  deepgemm,        ///< scale_inv = max(amax, 1e-4) / max, fp32 (S3.4)
  deepgemm_ue8m0,  ///< the same rounded up to a power of two, kept in fp32
  e8m0_roundup,    ///< smallest power of two that does not saturate, one byte (S3.5)
  e8m0_ocp_floor,  ///< the rule of the OCP MX 1.0 text, one byte; may saturate
  nvfp4,           ///< E4M3 byte relative to the amax of the whole matrix (S3.6)
};

inline constexpr float kFloatMax = 3.4028234663852886e38f;

/// Multiplier of the data before the cast, and what is stored to undo it.
struct BlockScale {
  float scale = 1.0f;
  float scale_inv = 1.0f;  ///< stored by the rules that keep fp32
  std::uint32_t code = 0;  ///< stored by the rules that keep a byte
};

/// The scale of S3.1. @param inf_value largest finite value of the input's dtype, for a tiny amax.
KITCHEN_HOST_DEVICE inline float compute_scale(float amax, float largest, float eps, bool pow2,
                                               float inf_value) {
  if (amax < eps) amax = eps;
  const std::uint32_t bits = bits_of(amax) & 0x7FFFFFFFu;
  if (bits == 0 || bits >= kFloatInfBits) return 1.0f;
  float scale = largest / amax;
  if (bits_of(scale) == kFloatInfBits) scale = inf_value;
  return pow2 ? float_from_bits(bits_of(scale) & 0xFF800000u) : scale;
}

/// scale_inv of S3.4. @param round_up to a power of two (ue8m0).
KITCHEN_HOST_DEVICE inline float deepgemm_scale_inv(float amax, float largest, bool round_up) {
  const float factor = (amax < 1e-4f ? 1e-4f : amax) / largest;
  if (!round_up) return factor;
  const std::uint32_t bits = bits_of(factor);
  int exponent = static_cast<int>((bits >> 23) & 0xFFu) + ((bits & 0x7FFFFFu) != 0 ? 1 : 0);
  exponent = exponent < 1 ? 1 : exponent > 254 ? 254 : exponent;
  return float_from_bits(static_cast<std::uint32_t>(exponent) << 23);
}

/// The factor S of S3.6 that maps the matrix's amax to 448·6.
KITCHEN_HOST_DEVICE inline float nvfp4_global_scale(float matrix_amax) {
  if (matrix_amax == 0.0f) return 1.0f;
  const float scale = 2688.0f / matrix_amax;
  if (scale == 0.0f) return 1.0f;
  return scale < kFloatMax ? scale : kFloatMax;
}

KITCHEN_HOST_DEVICE inline BlockScale nvfp4_block_scale(float amax, bool has_nan,
                                                        float matrix_amax) {
  const float global = nvfp4_global_scale(matrix_amax);
  const float wanted = amax * (global * (1.0f / 6.0f));
  BlockScale result;
  result.code = has_nan ? 0x7Fu : encode(wanted < kFloatMax ? wanted : kFloatMax, E4M3::spec());
  const float stored = decode(result.code, E4M3::spec());
  const float scale = 1.0f / (stored * (1.0f / global));
  result.scale = scale > kFloatMax ? kFloatMax : scale;  // a NaN stays
  return result;
}

/// What undoes an NVFP4 block: a block code times the matrix's amax over 2688.
KITCHEN_HOST_DEVICE inline float nvfp4_scale_inv(std::uint32_t code, float matrix_amax) {
  return (decode(code, E4M3::spec()) * matrix_amax) * (1.0f / 2688.0f);
}

/// Scale of one block.
///
/// @param amax        largest |x| without NaN, 0 for an empty block
/// @param has_nan     whether the block holds a NaN: rules that keep a byte, and int8, give it to
/// the scale
/// @param matrix_amax amax of the whole matrix, read by nvfp4 only
KITCHEN_HOST_DEVICE inline BlockScale block_scale(ScaleRule rule, FloatSpec format, float amax,
                                                  bool has_nan, float eps, float inf_value,
                                                  float matrix_amax) {
  const float largest = max_value(format);
  BlockScale result;
  switch (rule) {
    case ScaleRule::float32:
    case ScaleRule::float32_pow2:
      result.scale = compute_scale(amax, largest, eps, rule == ScaleRule::float32_pow2, inf_value);
      result.scale_inv = 1.0f / result.scale;
      // An integer has no NaN: the scale carries it, and the multiplier makes every code of the row
      // 0.
      if (format.is_integer() && has_nan) {
        result.scale_inv = float_from_bits(0x7FC00000u);
        result.scale = result.scale_inv;
      }
      return result;
    case ScaleRule::deepgemm:
    case ScaleRule::deepgemm_ue8m0:
      result.scale_inv = deepgemm_scale_inv(amax, largest, rule == ScaleRule::deepgemm_ue8m0);
      result.scale = 1.0f / result.scale_inv;
      return result;
    case ScaleRule::nvfp4:
      return nvfp4_block_scale(amax, has_nan, matrix_amax);
    case ScaleRule::e8m0_roundup:
      result.code = e8m0_roundup(amax * (1.0f / largest));
      break;
    case ScaleRule::e8m0_ocp_floor:
      result.code = e8m0_ocp_floor(amax, format.max_exponent);
      break;
  }
  if (has_nan) result.code = 0xFFu;
  result.scale = e8m0_reciprocal(result.code);
  return result;
}

}  // namespace kitchen::formats
