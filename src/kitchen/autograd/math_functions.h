#pragma once

#include "kitchen/base/tensor.h"

/// @file  math_functions.h
/// @brief Differentiable elementwise operations and unquantized matrix products.

namespace kitchen::autograd {

/// a + b of equal shapes, in a's dtype.
Tensor add(const Tensor& a, const Tensor& b);

/// a · b elementwise, equal shapes, in a's dtype.
Tensor multiply(const Tensor& a, const Tensor& b);

/// factor · x.
Tensor scale(const Tensor& x, float factor);

/// x [..., n] + bias [n].
Tensor add_bias(const Tensor& x, const Tensor& bias);

/// Conversion between float32, float16 and bfloat16; the gradient is converted back.
Tensor cast(const Tensor& x, DType dtype);

/// Sum of all elements, float32 [1].
Tensor sum(const Tensor& x);

/// alpha · a·bᵀ for a [..., m, k], b [..., n, k] with equal leading dimensions, in a's dtype.
Tensor matmul_nt(const Tensor& a, const Tensor& b, float alpha = 1.0f);

}  // namespace kitchen::autograd
