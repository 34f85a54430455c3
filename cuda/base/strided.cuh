#pragma once

#include "kitchen/base/tensor_view.h"

#include <cstdint>

/// @file  strided.cuh
/// @brief Two views of equal shape as a loop over a row-major index, for kernels that take any
/// strides.

namespace kitchen::cuda {

/// Sizes and strides of two views, the innermost dimension first; dimensions of size 1 are dropped
/// and neighbours that are dense in both views merged.
struct StridedPair {
  int rank = 0;
  std::int64_t size[kMaxRank] = {};
  std::int64_t stride_a[kMaxRank] = {};
  std::int64_t stride_b[kMaxRank] = {};

  /// Both views are one dense run.
  [[nodiscard]] bool is_dense() const {
    return rank == 0 || (rank == 1 && stride_a[0] == 1 && stride_b[0] == 1);
  }
};

template <class A, class B>
StridedPair strided_pair(const BasicView<A>& a, const BasicView<B>& b) {
  StridedPair pair;
  for (int i = a.rank - 1; i >= 0; --i) {
    const auto dim = static_cast<std::size_t>(i);
    if (a.shape[dim] == 1) continue;
    const int last = pair.rank - 1;
    if (last >= 0 && a.strides[dim] == pair.size[last] * pair.stride_a[last] &&
        b.strides[dim] == pair.size[last] * pair.stride_b[last]) {
      pair.size[last] *= a.shape[dim];
      continue;
    }
    pair.size[pair.rank] = a.shape[dim];
    pair.stride_a[pair.rank] = a.strides[dim];
    pair.stride_b[pair.rank] = b.strides[dim];
    ++pair.rank;
  }
  return pair;
}

struct Offsets {
  std::int64_t a;
  std::int64_t b;
};

/// Offsets, in elements, of the row-major index `index`.
__device__ inline Offsets offsets_at(const StridedPair& pair, std::int64_t index) {
  Offsets at{0, 0};
  for (int i = 0; i < pair.rank; ++i) {
    const std::int64_t position = index % pair.size[i];
    index /= pair.size[i];
    at.a += position * pair.stride_a[i];
    at.b += position * pair.stride_b[i];
  }
  return at;
}

}  // namespace kitchen::cuda
