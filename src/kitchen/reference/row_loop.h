#pragma once

#include "kitchen/base/tensor_view.h"
#include "kitchen/reference/parallel.h"

#include <array>
#include <cstdint>
#include <utility>

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
    // The order of the outer dimensions is free; the second one is that of the tiles.
    for (std::size_t i = 2; i < static_cast<std::size_t>(rank_); ++i) {
      if (dims_[i].stride_a == 1) std::swap(dims_[1], dims_[i]);
    }
  }

  /// Calls body(offset_a, stride_a, offset_b, stride_b, count) for runs that cover all elements,
  /// over all threads. Offsets and strides count elements. Runs are long, unless one view is the
  /// transpose of the other: then short runs walk over small tiles, so that every cache line is
  /// used up while it is there.
  template <class Body>
  void run(const Body& body) const {
    const bool turned = dims_[0].stride_a != 1 && dims_[1].stride_a == 1;
    const std::int64_t cols = turned ? kTileCols : kParallelGrain;
    const std::int64_t rows = turned ? kTileRows : 1;
    const std::int64_t tiles0 = ceil_div(dims_[0].size, cols);
    const std::int64_t tiles1 = ceil_div(dims_[1].size, rows);
    std::int64_t tiles = tiles0 * tiles1;
    for (int i = 2; i < rank_; ++i) tiles *= dims_[static_cast<std::size_t>(i)].size;
    parallel_rows(tiles, std::min(cols, dims_[0].size) * rows, [&](std::int64_t tile) {
      const std::int64_t col = tile % tiles0 * cols;
      const std::int64_t first = tile / tiles0 % tiles1 * rows;
      std::int64_t a = col * dims_[0].stride_a;
      std::int64_t b = col * dims_[0].stride_b;
      add_outer_offsets(tile / tiles0 / tiles1, &a, &b);
      const std::int64_t count = std::min(cols, dims_[0].size - col);
      for (std::int64_t r = first; r < std::min(first + rows, dims_[1].size); ++r) {
        body(a + r * dims_[1].stride_a, dims_[0].stride_a, b + r * dims_[1].stride_b,
             dims_[0].stride_b, count);
      }
    });
  }

 private:
  struct Dim {
    std::int64_t size = 1;
    std::int64_t stride_a = 1;
    std::int64_t stride_b = 1;
  };

  static constexpr std::int64_t kTileCols = 64;
  static constexpr std::int64_t kTileRows = 64;

  /// Adds the offsets of item `index` of all dimensions beyond the first two.
  void add_outer_offsets(std::int64_t index, std::int64_t* a, std::int64_t* b) const {
    for (int i = 2; i < rank_; ++i) {
      const Dim& dim = dims_[static_cast<std::size_t>(i)];
      *a += index % dim.size * dim.stride_a;
      *b += index % dim.size * dim.stride_b;
      index /= dim.size;
    }
  }

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
