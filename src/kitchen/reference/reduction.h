#pragma once

#include "kitchen/base/tensor_view.h"

#include <cstdint>

namespace kitchen::reference {

/// Elements of one partial sum of sum_all and sum_squares.
inline constexpr std::int64_t kSumChunk = 4096;

/// Sum of `count` fp32 values, or of their squares, in fp64: 8 interleaved partial sums (element i
/// goes to sum i mod 8), added as a binary tree.
double sum_of(const float* values, std::int64_t count);
double sum_of_squares(const float* values, std::int64_t count);

/// Chunk sums of kSumChunk elements of a contiguous tensor, added in ascending order to `start`.
/// `sum` is one of the two functions above.
double sum_chunks(const ConstView& x, double (*sum)(const float*, std::int64_t), double start);

}  // namespace kitchen::reference
