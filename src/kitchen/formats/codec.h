#pragma once

#include "kitchen/base/host_device.h"
#include "kitchen/base/math.h"
#include "kitchen/formats/float_spec.h"
#include "kitchen/formats/float_specs.h"

#include <cstdint>

/// @file  codec.h
/// @brief Numbers to codes and back, the same text for host and device (numerics.md S1, S2.3).
///
/// The arithmetic is on integers and without branches, so that a loop over a row vectorizes and CPU
/// and GPU cannot drift apart. A FloatSpec that is a constant at the call folds away.

namespace kitchen::formats {

inline constexpr std::uint32_t kFloatInfBits = 0x7F800000u;

/// round(x) clamped to [-127, 127] as a two's complement byte, ties to even; NaN gives 0 (S3.8).
KITCHEN_HOST_DEVICE inline std::uint32_t encode_int8(float x) {
  float r = x == x ? rintf(x) : 0.0f;
  r = r < -127.0f ? -127.0f : r;
  r = r > 127.0f ? 127.0f : r;
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(r)) & 0xFFu;
}

/// The code of `x`, rounded to nearest, ties to the even code.
///
/// Saturating (the default everywhere): beyond the largest value, infinities included, comes the
/// largest value (S1.1). Not saturating: Inf, else NaN, else the largest value, whichever the
/// format has (S1.2). NaN becomes the canonical positive NaN code, or the positive largest value.
/// The sign of zero is kept.
KITCHEN_HOST_DEVICE inline std::uint32_t encode(float x, FloatSpec spec, bool saturate = true) {
  if (spec.is_integer()) return encode_int8(x);
  const std::uint32_t bits = bits_of(x);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  const int m = spec.mantissa_bits;
  // Exponent field in the target's terms; below 1 the target is subnormal and shifts further right.
  // The implicit one is wrong for fp32 subnormals, which lie so far below that they round to 0
  // anyway.
  const int field = static_cast<int>(magnitude >> 23) - 127 + spec.bias;
  const int exponent = field < 1 ? 1 : field;
  const int want = 23 - m + exponent - field;
  const int shift = want > 25 ? 25 : want;
  const std::uint32_t mantissa = (magnitude & 0x7FFFFFu) | 0x800000u;
  const std::uint32_t odd = (mantissa >> shift) & 1u;
  const std::uint32_t rounded = (mantissa + ((1u << (shift - 1)) - 1u) + odd) >> shift;
  // A carry out of the mantissa lands in the next exponent by itself.
  std::uint32_t code = (static_cast<std::uint32_t>(exponent - 1) << m) + rounded;
  const int beyond = saturate             ? spec.max_code
                     : spec.inf_code >= 0 ? spec.inf_code
                     : spec.nan_code >= 0 ? spec.nan_code
                                          : spec.max_code;
  code =
      code > static_cast<std::uint32_t>(spec.max_code) ? static_cast<std::uint32_t>(beyond) : code;
  code |= (bits >> 31) << (spec.exponent_bits + m);
  const int nan = spec.nan_code >= 0 ? spec.nan_code : spec.max_code;
  return magnitude > kFloatInfBits ? static_cast<std::uint32_t>(nan) : code;
}

/// The exact value of a code. Every NaN code gives the quiet NaN 0x7FFFFFFF.
KITCHEN_HOST_DEVICE inline float decode(std::uint32_t code, FloatSpec spec) {
  if (spec.is_integer()) return static_cast<float>(static_cast<std::int8_t>(code));
  const int m = spec.mantissa_bits;
  const std::uint32_t magnitude = code & (spec.sign_mask() - 1u);
  const std::uint32_t sign = (code & spec.sign_mask()) << (31 - spec.exponent_bits - m);
  const std::uint32_t normal =
      (magnitude << (23 - m)) + (static_cast<std::uint32_t>(127 - spec.bias) << 23);
  const float step = float_from_bits(static_cast<std::uint32_t>(128 - spec.bias - m) << 23);
  const std::uint32_t subnormal =
      bits_of(static_cast<float>(static_cast<std::int32_t>(magnitude)) * step);
  std::uint32_t bits = magnitude < (1u << m) ? subnormal : normal;
  if (spec.inf_code >= 0) {
    bits = magnitude == static_cast<std::uint32_t>(spec.inf_code) ? kFloatInfBits : bits;
  }
  bits |= sign;
  if (spec.nan_code >= 0) {
    const int last = spec.inf_code >= 0 ? spec.inf_code : spec.max_code;
    bits = magnitude > static_cast<std::uint32_t>(last) ? 0x7FFFFFFFu : bits;
  }
  return float_from_bits(bits);
}

/// The largest finite value: 448 for E4M3.
KITCHEN_HOST_DEVICE inline float max_value(FloatSpec spec) {
  return decode(static_cast<std::uint32_t>(spec.max_code), spec);
}

/// bfloat16 bits, round to nearest even; overflow gives Inf, NaN gives 0x7FFF (S1.5).
KITCHEN_HOST_DEVICE inline std::uint16_t float_to_bf16(float x) {
  const std::uint32_t u = bits_of(x);
  const std::uint32_t rounded = (u + 0x7FFFu + ((u >> 16) & 1u)) >> 16;
  return static_cast<std::uint16_t>((u & 0x7FFFFFFFu) > kFloatInfBits ? 0x7FFFu : rounded);
}

KITCHEN_HOST_DEVICE inline float bf16_to_float(std::uint16_t bits) {
  return float_from_bits(std::uint32_t{bits} << 16);
}

/// IEEE binary16 bits, round to nearest even; overflow gives Inf, NaN gives 0x7FFF (S1.5).
KITCHEN_HOST_DEVICE inline std::uint16_t float_to_fp16(float x) {
  return static_cast<std::uint16_t>(encode(x, Float16::spec(), false));
}

KITCHEN_HOST_DEVICE inline float fp16_to_float(std::uint16_t bits) {
  return decode(bits, Float16::spec());
}

/// Scale code of the smallest power of two that is not below `v` >= 0 (S1.4, "roundup"). NaN gives
/// 0xFF.
KITCHEN_HOST_DEVICE inline std::uint32_t e8m0_roundup(float v) {
  const std::uint32_t bits = bits_of(v) & 0x7FFFFFFFu;
  if (bits > kFloatInfBits) return 0xFFu;
  if (bits == kFloatInfBits) return 0xFEu;
  const std::uint32_t exponent = bits >> 23;
  const std::uint32_t fraction = bits & 0x7FFFFFu;
  // Code 0 is 2^-127, an fp32 subnormal: what lies at or below it needs no step up.
  const bool up = fraction > 0 && exponent != 0xFEu && !(exponent == 0 && fraction <= 0x400000u);
  return exponent + (up ? 1u : 0u);
}

/// Scale code floor(log2(amax)) - max_exponent, the rule of the OCP MX 1.0 text (S1.4,
/// "ocp_floor"). The largest elements of a block may saturate under it.
KITCHEN_HOST_DEVICE inline std::uint32_t e8m0_ocp_floor(float amax, int max_exponent) {
  const std::uint32_t bits = bits_of(amax) & 0x7FFFFFFFu;
  if (bits > kFloatInfBits) return 0xFFu;
  if (bits == kFloatInfBits) return 0xFEu;
  if (bits == 0) return 0u;
  // An fp32 subnormal is far below every clamped result, so its true exponent does not matter.
  const int code = static_cast<int>(bits >> 23) - max_exponent;
  return static_cast<std::uint32_t>(code < 0 ? 0 : code);
}

/// 2^(code - 127); 0xFF is NaN.
KITCHEN_HOST_DEVICE inline float e8m0_decode(std::uint32_t code) {
  const std::uint32_t bits = code == 0 ? 0x00400000u : code << 23;
  return float_from_bits(code == 0xFFu ? 0x7FFFFFFFu : bits);
}

/// 2^(127 - code), exact; 0xFF is NaN.
KITCHEN_HOST_DEVICE inline float e8m0_reciprocal(std::uint32_t code) {
  const std::uint32_t bits = code == 0xFEu ? 0x00400000u : (254u - code) << 23;
  return float_from_bits(code == 0xFFu ? 0x7FFFFFFFu : bits);
}

/// E2M1 code of `y` rounded up with probability f/2^24 by the random word `r` (S2.3), f being the
/// distance to the value below in steps. Values of the format never move; NaN gives the positive
/// largest value.
KITCHEN_HOST_DEVICE inline std::uint32_t encode_e2m1_stochastic(float y, std::uint32_t r) {
  const bool is_nan = !(y == y);
  const float size = fabsf(y);
  const float a = size < 6.0f ? size : 6.0f;
  // Three ranges with steps 0.5, 1 and 2; subtractions and products below are exact.
  const float start = a < 2.0f ? 0.0f : a < 4.0f ? 2.0f : 4.0f;
  const float steps_per_unit = a < 2.0f ? 2.0f : a < 4.0f ? 1.0f : 0.5f;
  const std::uint32_t first = a < 2.0f ? 0u : a < 4.0f ? 4u : 6u;
  const float steps = (a - start) * steps_per_unit;
  const auto whole = static_cast<std::int32_t>(steps);
  const float part = steps - static_cast<float>(whole);
  const auto threshold = static_cast<std::int32_t>(part * 16777216.0f);
  const std::uint32_t up = static_cast<std::int32_t>(r >> 8) < threshold ? 1u : 0u;
  const std::uint32_t sign = is_nan ? 0u : (bits_of(y) >> 31) << 3;
  return (first + static_cast<std::uint32_t>(whole) + up) | sign;
}

}  // namespace kitchen::formats
