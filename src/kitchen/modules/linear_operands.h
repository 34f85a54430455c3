#pragma once

#include "kitchen/modules/linear_function.h"

/// @file  linear_operands.h
/// @brief The operands of a linear layer's three products, each along the dimension that it
/// reduces.

namespace kitchen::modules {

/// [tokens, features] of a tensor with any number of leading dimensions.
Tensor flatten_tokens(const Tensor& x);

Operand x_for_fprop(const LinearCall& call, const Tensor& x);
Operand x_for_wgrad(const LinearCall& call, const Tensor& x);
Operand g_for_dgrad(const LinearCall& call, const Tensor& g);
Operand g_for_wgrad(const LinearCall& call, const Tensor& g);
Operand weight_columnwise(const LinearCall& call, const Tensor& weight);

/// The weight for fprop: from the call's cache, which is refreshed as the call asks, else made
/// here.
/// @param needs_columnwise the cache must also hold the weight for dgrad.
/// @throws RuntimeError if the weight changed while its codes were kept.
Operand weight_for_fprop(const LinearCall& call, const Tensor& weight, bool needs_columnwise);

/// The accumulator of a fused weight gradient.
/// @throws AssertionError if the leaf has none.
Tensor require_main_grad(const LinearCall& call, const autograd::VariableMeta* leaf);

}  // namespace kitchen::modules
