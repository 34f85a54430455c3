#pragma once

#include "kitchen/base/host_device.h"

#include <cmath>
#include <cstdint>
#include <cstring>

/// @file  math.h
/// @brief Transcendental functions that give the same bits on the host and on a GPU.
///
/// Each is a polynomial of explicit fused multiply-adds around exponent bits: library versions differ
/// between host and device in up to half of all results. They contain no branch, so that compilers
/// vectorize loops over them. Errors are given relative to the exact result, in fp32 round-off terms.

namespace kitchen {

KITCHEN_HOST_DEVICE inline float float_from_bits(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

KITCHEN_HOST_DEVICE inline std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

namespace math_detail {

/// 2^r for r in [-0.5, 0.5], degree 7 Taylor-like polynomial in r·ln2.
KITCHEN_HOST_DEVICE inline float exp2_fraction(float r) {
  const float t = r * 0.693147180559945f;
  float p = 1.98412698e-4f;
  p = fmaf(p, t, 1.38888889e-3f);
  p = fmaf(p, t, 8.33333333e-3f);
  p = fmaf(p, t, 4.16666667e-2f);
  p = fmaf(p, t, 1.66666667e-1f);
  p = fmaf(p, t, 0.5f);
  p = fmaf(p, t, 1.0f);
  return fmaf(p, t, 1.0f);
}

/// value · 2^n for n in [-252, 254], in two exact-range steps.
KITCHEN_HOST_DEVICE inline float scale_by_power(float value, std::int32_t n) {
  const std::int32_t half = n / 2;
  const std::int32_t rest = n - half;
  const float a = float_from_bits(static_cast<std::uint32_t>(half + 127) << 23);
  const float b = float_from_bits(static_cast<std::uint32_t>(rest + 127) << 23);
  return value * a * b;
}

KITCHEN_HOST_DEVICE inline float clamp(float x, float low, float high) {
  // Written as selections, not fmin/fmax: a NaN falls through both and stays NaN.
  x = x < low ? low : x;
  return x > high ? high : x;
}

}  // namespace math_detail

/// 2^x. Relative error below 3e-7 where the result is normal; 0 below -150, Inf from 128 on; NaN stays.
KITCHEN_HOST_DEVICE inline float exp2_exact(float x) {
  const float c = math_detail::clamp(x, -151.0f, 129.0f);
  const float n = rintf(c);
  const float r = c - n;
  const auto power = static_cast<std::int32_t>(n == n ? n : 0.0f);
  return math_detail::scale_by_power(math_detail::exp2_fraction(r), power);
}

/// e^x. Relative error below 3e-7 where the result is normal; 0 below -104, Inf from 88.73 on; NaN stays.
KITCHEN_HOST_DEVICE inline float exp_exact(float x) {
  const float c = math_detail::clamp(x, -105.0f, 89.5f);
  const float n = rintf(c * 1.44269504f);
  // ln 2 in two parts, the first with few bits, so that n·hi is exact.
  float t = fmaf(n, -0.693359375f, c);
  t = fmaf(n, 2.12194440e-4f, t);
  float p = 1.98412698e-4f;
  p = fmaf(p, t, 1.38888889e-3f);
  p = fmaf(p, t, 8.33333333e-3f);
  p = fmaf(p, t, 4.16666667e-2f);
  p = fmaf(p, t, 1.66666667e-1f);
  p = fmaf(p, t, 0.5f);
  p = fmaf(p, t, 1.0f);
  p = fmaf(p, t, 1.0f);
  const auto power = static_cast<std::int32_t>(n == n ? n : 0.0f);
  return math_detail::scale_by_power(p, power);
}

/// tanh(x) = sign(x) · (1 - e) / (1 + e) with e = exp(-2|x|); for |x| < 0.25 an odd polynomial, since the
/// quotient would cancel. Relative error below 5e-7.
KITCHEN_HOST_DEVICE inline float tanh_exact(float x) {
  const float a = fabsf(x);
  const float e = exp_exact(-2.0f * a);
  const float large = (1.0f - e) / (1.0f + e);
  const float s = a * a;
  float p = 0.00886323552990219656886f;
  p = fmaf(p, -s, 0.0218694885361552028218f);
  p = fmaf(p, -s, 0.0539682539682539682540f);
  p = fmaf(p, -s, 0.133333333333333333333f);
  p = fmaf(p, -s, 0.333333333333333333333f);
  const float small = fmaf(a * s, -p, a);
  const float magnitude = a < 0.25f ? small : large;
  return copysignf(magnitude, x);
}

/// erf(x) by the rational-exponential form 7.1.26-like refinement: |x| < 1 Taylor-type polynomial, else
/// 1 - exp(-x²)·q(t), t = 1/(1 + 0.3275911|x|). Absolute error below 2e-7.
KITCHEN_HOST_DEVICE inline float erf_exact(float x) {
  const float a = fabsf(x);
  const float s = a * a;
  float p = -8.5489e-7f;  // x·Σ (-1)^k x^2k / (k!(2k+1)) · 2/sqrt(pi)
  p = fmaf(p, s, 1.2055e-5f / 1.0f);
  p = fmaf(p, s, -1.2055332e-4f);
  p = fmaf(p, s, 8.5483270e-4f);
  p = fmaf(p, s, -5.2239776e-3f);
  p = fmaf(p, s, 2.6866171e-2f);
  p = fmaf(p, s, -1.1283792e-1f);
  p = fmaf(p, s, 3.7612639e-1f);
  const float small = fmaf(a * s, -p, a * 1.1283791671f);
  const float c = a < 4.0f ? a : 4.0f;
  const float t = 1.0f / (1.0f + 0.3275911f * c);
  float q = 1.061405429f;
  q = fmaf(q, t, -1.453152027f);
  q = fmaf(q, t, 1.421413741f);
  q = fmaf(q, t, -0.284496736f);
  q = fmaf(q, t, 0.254829592f);
  const float large = 1.0f - q * t * exp_exact(-c * c);
  const float magnitude = x == x ? (a < 1.0f ? small : large) : x;
  return copysignf(magnitude, x);
}

/// Natural logarithm of a positive normal number; log(0) = -Inf, log(x < 0) = NaN, log(Inf) = Inf.
/// Absolute error below 1e-7 · max(1, |log x|). Subnormal inputs are scaled first.
KITCHEN_HOST_DEVICE inline float log_exact(float x) {
  const bool tiny = x < 1.17549435e-38f;
  const float y = tiny ? x * 8388608.0f : x;
  const std::uint32_t bits = bits_of(y);
  // Mantissa in [sqrt(1/2), sqrt(2)).
  const auto e = static_cast<std::int32_t>((bits - 0x3F3504F3u)) >> 23;
  const float m = float_from_bits(bits - (static_cast<std::uint32_t>(e) << 23));
  const float f = m - 1.0f;
  const float s = f / (2.0f + f);
  const float z = s * s;
  float p = 0.15381385f;
  p = fmaf(p, z, 0.18182710f);
  p = fmaf(p, z, 0.22222198f);
  p = fmaf(p, z, 0.28571429f);
  p = fmaf(p, z, 0.4f);
  p = fmaf(p, z, 0.66666667f);
  const float n = static_cast<float>(e) - (tiny ? 23.0f : 0.0f);
  const float log_m = fmaf(s * z, p, 2.0f * s);
  const float result = fmaf(n, 0.693359375f, fmaf(n, -2.12194440e-4f, log_m));
  if (x == 0.0f) return -INFINITY;
  if (!(x > 0.0f)) return NAN;
  if (bits_of(x) == 0x7F800000u) return x;
  return result;
}

}  // namespace kitchen
