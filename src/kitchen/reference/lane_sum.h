#pragma once

#include <cstdint>

/// @file  lane_sum.h
/// @brief The one order of fp32 row sums that exact ops promise (ops/norm.h).

namespace kitchen::reference {

inline constexpr std::int64_t kLanes = 8;

/// Adds lane i and i + 4, then i + 2, then i + 1: what a shuffle reduction over 8 threads does.
inline float add_lanes(const float* lanes) {
  const float a = lanes[0] + lanes[4];
  const float b = lanes[1] + lanes[5];
  const float c = lanes[2] + lanes[6];
  const float d = lanes[3] + lanes[7];
  return (a + c) + (b + d);
}

/// Σ term(i) for i < count: term i goes to lane i mod 8, ascending, then add_lanes. `term` must be
/// cheap and free of branches; the loop vectorizes over lanes.
template <class Term>
float lane_sum(std::int64_t count, Term&& term) {
  float lanes[kLanes] = {};
  const std::int64_t whole = count - count % kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term(i + lane);
  }
  for (std::int64_t i = whole; i < count; ++i) lanes[i - whole] += term(i);
  return add_lanes(lanes);
}

}  // namespace kitchen::reference
