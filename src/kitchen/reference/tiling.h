#pragma once

#include "kitchen/base/tensor_view.h"
#include "kitchen/formats/quantize_spec.h"
#include "kitchen/reference/matrix_tile.h"

#include <cstdint>

namespace kitchen::reference {

/// How a matrix is cut into tiles that fit the cache and hold whole blocks.
struct Tiling {
  std::int64_t rows;  ///< of a tile
  std::int64_t cols;
  std::int64_t num_rows;  ///< tiles down a slice
  std::int64_t num_cols;
  std::int64_t slices;

  [[nodiscard]] std::int64_t size() const { return slices * num_rows * num_cols; }
  [[nodiscard]] std::int64_t pitch() const {
    return cols + 16;
  }  // rows start in different cache sets
};

/// The tiles of x [slices, rows, cols] for the blocks of `spec`. @param cols of the codes.
Tiling make_tiling(const ConstView& x, const QuantizeSpec& spec, std::int64_t cols);

/// Tile `index` of a matrix [slices, rows, cols], smaller at the edges.
MatrixTile tile_at(const Tiling& tiling, std::int64_t index, std::int64_t rows, std::int64_t cols);

}  // namespace kitchen::reference
