#pragma once

#include "kitchen/base/math.h"

/// @file  activation_functions.h
/// @brief The scalar functions behind ops/activation.h, compiled by host and device from this one
/// text.
///
/// Each struct has `value` and `slope` = d value / dh. No contraction: products and sums are
/// rounded one by one except where fmaf is written. NaN gives NaN.

namespace kitchen::ops {

struct Gelu {
  KITCHEN_HOST_DEVICE static float value(float h) {
    return 0.5f * h * (1.0f + erf_exact(h * 0.70710678f));
  }
  KITCHEN_HOST_DEVICE static float slope(float h) {
    // Beyond ±20 the slope is 0 or 1 in fp32; the clamp keeps Inf · 0 out.
    const float c = math_detail::clamp(h, -20.0f, 20.0f);
    const float density = 0.39894228f * exp_exact(-0.5f * c * c);
    return fmaf(c, density, 0.5f * (1.0f + erf_exact(c * 0.70710678f)));
  }
};

struct GeluTanh {
  // tanh argument: sqrt(2/π)·(h + 0.044715·h³) = h·(kLinear + kCubic·h²).
  static constexpr float kLinear = 0.79788456f;
  static constexpr float kCubic = 0.035677408f;

  KITCHEN_HOST_DEVICE static float value(float h) {
    const float t = tanh_exact(h * fmaf(h * h, kCubic, kLinear));
    return 0.5f * h * (1.0f + t);
  }
  KITCHEN_HOST_DEVICE static float slope(float h) {
    const float c = math_detail::clamp(h, -20.0f, 20.0f);
    const float s = c * c;
    const float t = tanh_exact(c * fmaf(s, kCubic, kLinear));
    const float inner = fmaf(s, 3.0f * kCubic, kLinear);
    return 0.5f * (1.0f + t) + 0.5f * c * (1.0f - t * t) * inner;
  }
};

struct Silu {
  KITCHEN_HOST_DEVICE static float value(float h) { return h / (1.0f + exp_exact(-h)); }
  KITCHEN_HOST_DEVICE static float slope(float h) {
    const float c = math_detail::clamp(h, -100.0f, 100.0f);
    const float s = 1.0f / (1.0f + exp_exact(-c));
    return s * fmaf(c, 1.0f - s, 1.0f);
  }
};

struct Relu {
  // "not above 0" is written as h <= 0, which is false for NaN, so that NaN is not swallowed.
  KITCHEN_HOST_DEVICE static float value(float h) { return h <= 0.0f ? 0.0f : h; }
  KITCHEN_HOST_DEVICE static float slope(float h) {
    return h <= 0.0f ? 0.0f : (h > 0.0f ? 1.0f : h);
  }
};

}  // namespace kitchen::ops
