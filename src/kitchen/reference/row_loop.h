#pragma once

#include "kitchen/base/tensor_view.h"
#include "kitchen/reference/parallel.h"

#include <array>
#include <cstdint>

namespace kitchen::reference {

/// Two views of equal shape as few, long rows: dimensions of size 1 are dropped, neighbours that
/// are dense in both views are merged.
class RowLoop {
 public:
  template <class A, class B>
  RowLoop(const BasicView<A>& a, const BasicView<B>& b) {
    for (int i = a.rank - 1; i >= 0; --i) {
      const auto dim = static_cast<std::size_t>(i);
      add_outer(a.shape[dim], a.strides[dim], b.strides[dim]);
    }
  }

  /// Calls body(offset_a, stride_a, offset_b, stride_b, count) for runs that cover all elements,
  /// over all threads. Offsets and strides count elements.
  template <class Body>
  void run(const Body& body) const {
    const std::int64_t cols = dims_[0].size;
    const std::int64_t piece = std::min(cols, kParallelGrain);
    const std::int64_t pieces = piece == 0 ? 0 : ceil_div(cols, piece);
    std::int64_t rows = 1;
    for (int i = 1; i < rank_; ++i) rows *= dims_[static_cast<std::size_t>(i)].size;
    parallel_rows(rows * pieces, piece, [&](std::int64_t index) {
      const std::int64_t col = index % pieces * piece;
      std::int64_t a = col * dims_[0].stride_a;
      std::int64_t b = col * dims_[0].stride_b;
      std::int64_t row = index / pieces;
      for (int i = 1; i < rank_; ++i) {
        const Dim& dim = dims_[static_cast<std::size_t>(i)];
        a += row % dim.size * dim.stride_a;
        b += row % dim.size * dim.stride_b;
        row /= dim.size;
      }
      body(a, dims_[0].stride_a, b, dims_[0].stride_b, std::min(piece, cols - col));
    });
  }

 private:
  struct Dim {
    std::int64_t size = 1;
    std::int64_t stride_a = 1;
    std::int64_t stride_b = 1;
  };

  void add_outer(std::int64_t size, std::int64_t stride_a, std::int64_t stride_b) {
    if (size == 1) return;
    Dim& last = dims_[static_cast<std::size_t>(rank_ - 1)];
    if (rank_ == 1 && last.size == 1) {
      last = {size, stride_a, stride_b};
    } else if (stride_a == last.stride_a * last.size && stride_b == last.stride_b * last.size) {
      last.size *= size;
    } else {
      dims_[static_cast<std::size_t>(rank_++)] = {size, stride_a, stride_b};
    }
  }

  int rank_ = 1;
  std::array<Dim, kMaxRank> dims_{};  ///< innermost first
};

}  // namespace kitchen::reference
