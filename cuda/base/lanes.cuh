#pragma once

/// @file  lanes.cuh
/// @brief Sums over neighbouring lanes in the one order that exact ops promise (ops/norm.h).

namespace kitchen::cuda {

/// Sum over `width` neighbouring lanes, a power of two: lane i and i + width/2 first, then i +
/// width/4, down to i + 1. Valid in all of them; every lane of the warp must call it.
template <class Number>
__device__ inline Number sum_lanes(Number value, int width) {
  for (int step = width / 2; step > 0; step /= 2) {
    value += __shfl_xor_sync(0xFFFFFFFFu, value, step);
  }
  return value;
}

}  // namespace kitchen::cuda
