#pragma once

#include "kitchen/base/tensor.h"

#include <cstdint>
#include <vector>

/// @file  values.h
/// @brief Inputs of tests: reproducible values that float32, bfloat16 and float16 all hold exactly.

namespace kitchen::testing {

/// A CPU context whose allocator fills new blocks with NaN.
ContextPtr poisoned_context();

/// `count` multiples of 1/32 in [-4, 4), a function of `seed`: exact in every high-precision dtype,
/// and so are products and short sums of them in fp32.
std::vector<double> grid_values(std::int64_t count, std::uint64_t seed);

/// A contiguous tensor of `dtype` (float32, bfloat16, float16) that holds `values`, which must be
/// exact in it.
Tensor tensor_of(const ContextPtr& context, const Shape& shape, DType dtype,
                 const std::vector<double>& values);

/// Round-off of one rounding to `dtype`, relative: 2^-24, 2^-8 or 2^-11.
double unit_roundoff(DType dtype);

}  // namespace kitchen::testing
