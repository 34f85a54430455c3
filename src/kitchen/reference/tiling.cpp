#include "kitchen/reference/tiling.h"

#include "kitchen/reference/parallel.h"

#include <algorithm>

namespace kitchen::reference {

namespace {

/// `unit` repeated to about `wanted`, at most what `extent` needs.
std::int64_t fitted(std::int64_t extent, std::int64_t unit, std::int64_t wanted) {
  const std::int64_t units = std::max<std::int64_t>(1, wanted / unit);
  return std::max<std::int64_t>(
             1, std::min(units, ceil_div(std::max<std::int64_t>(extent, 1), unit))) *
         unit;
}

}  // namespace

Tiling make_tiling(const ConstView& x, const QuantizeSpec& spec, std::int64_t cols) {
  const std::int64_t rows = x.shape[1];
  const bool free = spec.granularity.is_per_tensor();
  std::int64_t unit_rows = free ? 1 : spec.granularity.rows;
  std::int64_t unit_cols = free ? 1 : spec.granularity.cols;
  if (unit_rows == 0) unit_rows = std::max<std::int64_t>(rows, 1);
  if (unit_cols == 0) unit_cols = std::max<std::int64_t>(cols, 1);
  if (spec.hadamard) unit_cols = ceil_div(unit_cols, 16) * 16;
  const bool transposed = x.strides[2] != 1;
  Tiling tiling{};
  // A transposed matrix is read in runs of 32 elements, one cache line of bf16; a matrix of one
  // scale in runs that are long enough to be read ahead.
  tiling.rows = fitted(rows, unit_rows, transposed ? 32 : free ? 1 : 4);
  tiling.cols = fitted(cols, unit_cols, transposed ? 512 : free ? 4096 : 1024);
  tiling.num_rows = ceil_div(rows, tiling.rows);
  tiling.num_cols = ceil_div(cols, tiling.cols);
  tiling.slices = x.shape[0];
  return tiling;
}

MatrixTile tile_at(const Tiling& tiling, std::int64_t index, std::int64_t rows, std::int64_t cols) {
  MatrixTile tile;
  const std::int64_t j = index % tiling.num_cols;
  const std::int64_t i = index / tiling.num_cols % tiling.num_rows;
  tile.slice = index / tiling.num_cols / tiling.num_rows;
  tile.row = i * tiling.rows;
  tile.col = j * tiling.cols;
  tile.rows = std::min(tiling.rows, rows - tile.row);
  tile.cols = std::min(tiling.cols, cols - tile.col);
  return tile;
}

}  // namespace kitchen::reference
