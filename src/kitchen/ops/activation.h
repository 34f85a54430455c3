#pragma once

#include "kitchen/base/tensor.h"

#include <string>
#include <string_view>

namespace kitchen::ops {

/// gelu: x·Φ(x) with erf. gelu_tanh: the tanh approximation of GPT-2. silu: x·sigmoid(x), gated:
/// SwiGLU.
enum class Activation { gelu, gelu_tanh, silu, relu };

std::string to_string(Activation activation);
/// @throws ValueError listing the known names.
Activation activation_from_string(std::string_view text);

struct ActivationOptions {
  Activation activation = Activation::gelu;
  bool gated = false;  ///< x holds [gate, linear]: y = act(gate)·(linear + linear_offset)
  float linear_offset = 0.0f;
};

/// Kernel: h = x + bias rounded to x's dtype (as a separate addition would), then in fp32 y =
/// act(h), or act(h_gate)·(h_linear + offset), one rounding. x [rows, cols or 2·cols], y [rows,
/// cols], contiguous; bias [columns of x] or undefined. Exact: the functions are those of
/// ops/activation_functions.h.
struct ActivationForwardKernel {
  static constexpr const char* kName = "activation_forward";
  using Fn = void (*)(const Stream&, ConstView x, ConstView bias, View y, const ActivationOptions&);
};

/// Kernel: dx = dy · d act/dh, dx has x's shape and dtype; gated: d gate = dy·(h_linear +
/// offset)·act'(h_gate), d linear = dy·act(h_gate). Exact.
struct ActivationBackwardKernel {
  static constexpr const char* kName = "activation_backward";
  using Fn = void (*)(const Stream&, ConstView dy, ConstView x, ConstView bias, View dx,
                      const ActivationOptions&);
};

/// y [..., f] from x [..., f] (or [..., 2f] when gated); bias undefined or of x's last size. NaN
/// stays NaN.
/// @throws ValueError on sizes that do not fit or an odd last size when gated; TypeError on other
/// dtypes.
Tensor activation_forward(const Tensor& x, const Tensor& bias, const ActivationOptions& options);

/// Gradient with respect to x (and to x + bias: the bias gradient is its column sum).
Tensor activation_backward(const Tensor& dy, const Tensor& x, const Tensor& bias,
                           const ActivationOptions& options);

}  // namespace kitchen::ops
