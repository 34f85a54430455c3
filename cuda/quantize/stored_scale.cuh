#pragma once

#include "kitchen/formats/scale_rule.h"
#include "kitchen/ops/quantize.h"

#include <algorithm>
#include <cstdint>

/// @file  stored_scale.cuh
/// @brief The factor of an element of a quantized matrix, from the scales as they are stored.

namespace kitchen::cuda {

/// Scales of a matrix [slices, rows, cols], by value into a kernel.
struct StoredScales {
  const void* scale_inv;
  const float* amax;  ///< [slices], read by nvfp4
  std::int64_t slices, rows, cols;
  std::int64_t block_rows, block_cols;
  std::int64_t scale_rows, scale_cols;
  bool has_byte_scales, is_nvfp4;
};

inline StoredScales stored_scales(const ops::QuantizedView& x) {
  const auto extent = [](std::int64_t block, std::int64_t size) {
    return block == 0 ? std::max<std::int64_t>(size, 1) : block;
  };
  return {x.scale_inv.data,
          static_cast<const float*>(x.amax.data),
          x.codes.shape[0],
          x.codes.shape[1],
          x.codes.shape[2],
          extent(x.spec.stored_scale_rows(), x.codes.shape[1]),
          extent(x.spec.granularity.cols, x.codes.shape[2]),
          x.scale_inv.shape[1],
          x.scale_inv.shape[2],
          x.spec.has_byte_scales(),
          x.spec.rule == formats::ScaleRule::nvfp4};
}

__device__ inline float scale_at(const StoredScales& s, std::int64_t slice, std::int64_t row,
                                 std::int64_t col) {
  const std::int64_t at =
      (slice * s.scale_rows + row / s.block_rows) * s.scale_cols + col / s.block_cols;
  if (!s.has_byte_scales) return static_cast<const float*>(s.scale_inv)[at];
  const std::uint32_t code = static_cast<const std::uint8_t*>(s.scale_inv)[at];
  return s.is_nvfp4 ? formats::nvfp4_scale_inv(code, s.amax[slice]) : formats::e8m0_decode(code);
}

}  // namespace kitchen::cuda
