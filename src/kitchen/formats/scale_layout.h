#pragma once

#include "kitchen/formats/packing.h"

/// @file  scale_layout.h
/// @brief Where the scale of a block lies when a GEMM backend reads it (numerics.md S3.3, S3.7).

namespace kitchen::formats {

/// Order of a matrix of scales [rows, cols]; cols run along the reduction. Padding holds 0.
enum class ScaleLayout : int {
  row_major,    ///< [rows, cols]: what a QuantizedMatrix holds
  k_major,      ///< [cols, rows rounded up to 4]: fp32 scales of lines, 1x128
  padded_rows,  ///< [rows, cols rounded up to 4]: fp32 scales of squares, 128x128
  tiles_128x4,  ///< tiles of 512 bytes: byte scales of MX and NVFP4
};

KITCHEN_HOST_DEVICE constexpr std::int64_t rounded_up_to_4(std::int64_t size) {
  return (size + 3) / 4 * 4;
}

/// Number of scales that the layout holds, padding included.
KITCHEN_HOST_DEVICE constexpr std::int64_t scale_layout_size(ScaleLayout layout, std::int64_t rows,
                                                             std::int64_t cols) {
  if (layout == ScaleLayout::k_major) return cols * rounded_up_to_4(rows);
  if (layout == ScaleLayout::padded_rows) return rows * rounded_up_to_4(cols);
  if (layout == ScaleLayout::tiles_128x4) return swizzled_size_128x4(rows, cols);
  return rows * cols;
}

/// Place of the scale (row, col) in the layout.
KITCHEN_HOST_DEVICE constexpr std::int64_t scale_layout_offset(ScaleLayout layout, std::int64_t row,
                                                               std::int64_t col, std::int64_t rows,
                                                               std::int64_t cols) {
  if (layout == ScaleLayout::k_major) return col * rounded_up_to_4(rows) + row;
  if (layout == ScaleLayout::padded_rows) return row * rounded_up_to_4(cols) + col;
  if (layout == ScaleLayout::tiles_128x4) return swizzled_offset_128x4(row, col, cols);
  return row * cols + col;
}

}  // namespace kitchen::formats
