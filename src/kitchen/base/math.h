#pragma once

#include "kitchen/base/host_device.h"

#include <cmath>
#include <cstdint>
#include <cstring>

/// @file  math.h
/// @brief Transcendental functions that give the same bits on the host and on a GPU.
///
/// Each is a polynomial of explicit fused multiply-adds around exponent bits: library versions
/// differ between host and device in up to half of all results. They contain no branch, so that
/// compilers vectorize loops over them. The error bounds are the largest errors found against fp64
/// over all exponents (tests/base/math_test.cpp), rounded up.

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

/// value · 2^n for n in [-126, 129], in two steps that stay in range.
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

/// 2^x. Relative error below 9e-8; 0 where the result would be subnormal (x < -126), since
/// processors work on subnormals many times slower; Inf from 128 on; NaN stays.
KITCHEN_HOST_DEVICE inline float exp2_exact(float x) {
  const float c = math_detail::clamp(x, -126.0f, 129.0f);
  const float n = rintf(c);
  const float r = c - n;
  const auto power = static_cast<std::int32_t>(n == n ? n : 0.0f);
  const float value = math_detail::scale_by_power(math_detail::exp2_fraction(r), power);
  return x < -126.0f ? 0.0f : value;
}

/// e^x. Relative error below 9e-8; 0 where the result would be subnormal (x < -87.33654), as in
/// exp2_exact; Inf from 88.73 on; NaN stays.
KITCHEN_HOST_DEVICE inline float exp_exact(float x) {
  const float c = math_detail::clamp(x, -87.33654f, 89.5f);
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
  const float value = math_detail::scale_by_power(p, power);
  return x < -87.33654f ? 0.0f : value;
}

/// tanh(x) = sign(x) · (1 - 2 / (1 + exp(2|x|))); for |x| < 0.55 an odd polynomial, since the
/// difference would cancel. Relative error below 2e-7; ±1 at the ends, the sign of zero and NaN
/// stay.
KITCHEN_HOST_DEVICE inline float tanh_exact(float x) {
  const float a = fabsf(x);
  const float large = 1.0f - 2.0f / (1.0f + exp_exact(2.0f * a));
  const float s = a * a;
  float p = -0.006274237763136625f;
  p = fmaf(p, s, 0.021071678027510643f);
  p = fmaf(p, s, -0.05385230854153633f);
  p = fmaf(p, s, 0.13332585990428925f);
  p = fmaf(p, s, -0.33333316445350647f);
  const float small = fmaf(a * s, p, a);
  return copysignf(a < 0.55f ? small : large, x);
}

/// erf(x): for |x| < 1 an odd polynomial, else 1 - exp(p(|x|)) where p fits log(erfc) on [1, 3.95];
/// from there on erf rounds to ±1. Relative (hence absolute) error below 9e-8 for normal x; NaN
/// stays.
KITCHEN_HOST_DEVICE inline float erf_exact(float x) {
  const float a = fabsf(x);
  const float s = a * a;
  float p = 7.853518764022738e-05f;
  p = fmaf(p, s, -0.0008010081364773214f);
  p = fmaf(p, s, 0.005188313312828541f);
  p = fmaf(p, s, -0.026853803545236588f);
  p = fmaf(p, s, 0.1128358468413353f);
  p = fmaf(p, s, -0.3761262595653534f);
  p = fmaf(p, s, 0.12837916612625122f);
  const float small = fmaf(a, p, a);
  const float c = a > 3.95f ? 3.95f : a;
  float q = -2.1686764739570208e-05f;
  q = fmaf(q, c, 0.0004413353162817657f);
  q = fmaf(q, c, -0.004204556345939636f);
  q = fmaf(q, c, 0.025208240374922752f);
  q = fmaf(q, c, -0.1084185540676117f);
  q = fmaf(q, c, -0.6332198977470398f);
  q = fmaf(q, c, -1.1295783519744873f);
  q = fmaf(q, c, 0.00018803711282089353f);
  const float large = 1.0f - exp_exact(q);
  return copysignf(a < 1.0f ? small : large, x);
}

/// Natural logarithm. Relative error below 9e-8, also near 1. log(±0) = -Inf, log(x < 0) = NaN,
/// log(Inf) = Inf, NaN stays. Subnormal inputs are scaled first.
KITCHEN_HOST_DEVICE inline float log_exact(float x) {
  const bool tiny = x < 1.17549435e-38f;
  const float y = tiny ? x * 8388608.0f : x;
  const std::uint32_t bits = bits_of(y);
  // Mantissa in [sqrt(1/2), sqrt(2)).
  const auto e = static_cast<std::int32_t>(bits - 0x3F3504F3u) >> 23;
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
  // log m = f - s·(f - z·p): f is exact, so the rounding of s enters only in the second, smaller
  // term.
  const float log_m = f - s * (f - z * p);
  const float finite = fmaf(n, 0.693359375f, fmaf(n, -2.12194440e-4f, log_m));
  const float positive = bits_of(x) == 0x7F800000u ? x : finite;
  const float other = x == 0.0f ? -INFINITY : NAN;
  return x > 0.0f ? positive : other;
}

}  // namespace kitchen
