#pragma once

#include "kitchen/base/tensor.h"

#include <vector>

/// @file  view_functions.h
/// @brief Differentiable counterparts of Tensor's raw view methods. None copies in forward unless it says so.

namespace kitchen::autograd {

/// Same elements in another shape (one size may be -1); copies if the strides do not allow a view.
Tensor reshape(const Tensor& x, Shape shape);

Tensor transpose(const Tensor& x, std::int64_t a, std::int64_t b);

Tensor permute(const Tensor& x, const std::vector<int>& order);

/// Row-major copy if needed.
Tensor contiguous(const Tensor& x);

/// Cuts dimension `dim` into consecutive pieces of `sizes`. One node for all pieces: backward writes each
/// piece's gradient into one buffer. @throws ValueError if the sizes do not sum to the dimension.
std::vector<Tensor> split(const Tensor& x, std::int64_t dim, const std::vector<std::int64_t>& sizes);

/// Joins `pieces`, one or more, along dimension `dim`; copies. Undoes split.
/// @throws ValueError without a piece.
Tensor concatenate(const std::vector<Tensor>& pieces, std::int64_t dim);

/// Repeats each slice of dimension `dim` `repeats` times in a row (h0 h0 h1 h1); gradients sum over repeats.
Tensor repeat_interleave(const Tensor& x, std::int64_t dim, std::int64_t repeats);

}  // namespace kitchen::autograd
