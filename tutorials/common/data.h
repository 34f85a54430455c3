#pragma once

#include "kitchen/base/tensor.h"

#include <cstdint>
#include <vector>

namespace kitchen::tutorials {

/// A float32 tensor of normal numbers with mean 0; element i is a function of `seed` and i alone,
/// so that every run and every backend starts from the same bits.
Tensor normal_tensor(const ContextPtr& context, const Shape& shape, std::uint64_t seed,
                     double standard_deviation = 1.0);

/// `normal_tensor` with `outlier` in place of one element of a row-major matrix.
Tensor normal_with_outlier(const ContextPtr& context, const Shape& shape, std::uint64_t seed,
                           std::int64_t place, float outlier);

/// sqrt(Σ(x - y)² / Σ y²) of two tensors of one size: the relative error of x, summed in fp64.
/// @throws ValueError if their sizes differ.
double relative_error(const Tensor& x, const Tensor& y);

/// 10·log10 of signal over noise of a relative error: 20 dB more is a tenth of the error.
double decibels(double relative_error);

}  // namespace kitchen::tutorials
