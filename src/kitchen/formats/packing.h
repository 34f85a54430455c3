#pragma once

#include "kitchen/base/host_device.h"

#include <cstdint>

/// @file  packing.h
/// @brief Byte layouts that backends and files want: two 4-bit codes a byte, scales in 128x4 tiles.

namespace kitchen::formats {

/// Bytes of a row of `cols` packed 4-bit codes.
KITCHEN_HOST_DEVICE constexpr std::int64_t packed4_cols(std::int64_t cols) {
  return (cols + 1) / 2;
}

/// Packs a row-major matrix of 4-bit codes: the even column in bits 0-3, the odd one in bits 4-7;
/// an odd width pads the last high nibble with 0 (S1.3). `packed` has rows·packed4_cols(cols)
/// bytes.
inline void pack4(const std::uint8_t* codes, std::int64_t rows, std::int64_t cols,
                  std::uint8_t* packed) {
  const std::int64_t width = packed4_cols(cols);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::uint8_t* row = codes + r * cols;
    for (std::int64_t j = 0; j < width; ++j) {
      const int high = 2 * j + 1 < cols ? row[2 * j + 1] : 0;
      packed[r * width + j] = static_cast<std::uint8_t>((row[2 * j] & 15) | ((high & 15) << 4));
    }
  }
}

/// Inverse of pack4.
inline void unpack4(const std::uint8_t* packed, std::int64_t rows, std::int64_t cols,
                    std::uint8_t* codes) {
  const std::int64_t width = packed4_cols(cols);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) {
      const int byte = packed[r * width + c / 2];
      codes[r * cols + c] = static_cast<std::uint8_t>((c & 1) != 0 ? byte >> 4 : byte & 15);
    }
  }
}

/// Bytes of a rows x cols scale matrix in the 128x4 layout: both sizes padded to the tile (S3.7).
KITCHEN_HOST_DEVICE constexpr std::int64_t swizzled_size_128x4(std::int64_t rows,
                                                               std::int64_t cols) {
  return (rows + 127) / 128 * 128 * ((cols + 3) / 4 * 4);
}

/// Offset of the scale (row, col) in that layout; tiles of 512 bytes are row-major.
KITCHEN_HOST_DEVICE constexpr std::int64_t swizzled_offset_128x4(std::int64_t row, std::int64_t col,
                                                                 std::int64_t cols) {
  const std::int64_t tile = row / 128 * ((cols + 3) / 4) + col / 4;
  return tile * 512 + row % 32 * 16 + row % 128 / 32 * 4 + col % 4;
}

/// Copies row-major scales into the 128x4 layout, padding with 0.
inline void swizzle_128x4(const std::uint8_t* scales, std::int64_t rows, std::int64_t cols,
                          std::uint8_t* swizzled) {
  const std::int64_t size = swizzled_size_128x4(rows, cols);
  for (std::int64_t i = 0; i < size; ++i) swizzled[i] = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) {
      swizzled[swizzled_offset_128x4(r, c, cols)] = scales[r * cols + c];
    }
  }
}

}  // namespace kitchen::formats
