#include "kitchen/reference/quantize_tiles.h"

#include "kitchen/formats/codec.h"
#include "kitchen/reference/encode_lanes.h"
#include "kitchen/reference/matrix_tile.h"
#include "kitchen/reference/parallel.h"
#include "kitchen/reference/quantize.h"
#include "kitchen/reference/transpose_lanes.h"

#include <algorithm>
#include <cstring>

namespace kitchen::reference {

namespace {

constexpr std::int64_t kSide = 128;

/// The amax of the 128 blocks of one copy, and the multipliers that follow.
struct BlockLine {
  Amax amax[kSide];
  alignas(32) float scale[kSide];
};

/// A tile on its way; zero beyond the matrix's edge.
struct Workspace {
  alignas(64) std::uint16_t values[kSide * kSide];
  alignas(64) std::uint8_t columnwise[kSide * kSide];  ///< codes of the transpose, not transposed
  alignas(64) std::int16_t column_size[kSide];         ///< bits of the largest |x| of each column
  BlockLine rows;
  BlockLine columns;
  bool has_nan;
};

void load_values(const ConstView& x, const MatrixTile& tile, Workspace& work) {
  const auto* from = static_cast<const std::uint16_t*>(x.data) + tile.slice * x.strides[0] +
                     tile.row * x.strides[1] + tile.col;
  if (tile.rows < kSide || tile.cols < kSide) std::memset(work.values, 0, sizeof work.values);
  for (std::int64_t r = 0; r < tile.rows; ++r) {
    std::copy_n(from + r * x.strides[1], tile.cols, work.values + r * kSide);
  }
}

Amax amax_of_line(const std::uint16_t* values, std::int64_t stride) {
  Amax amax;
  for (std::int64_t i = 0; i < kSide; ++i) {
    const float value = formats::bf16_to_float(values[i * stride]);
    const Amax one = amax_of(&value, 1);
    amax.value = std::max(amax.value, one.value);
    amax.has_nan = amax.has_nan || one.has_nan;
  }
  return amax;
}

Amax amax_of_size(std::int16_t bits) {
  return {formats::bf16_to_float(static_cast<std::uint16_t>(bits)), false};
}

/// The amax of all rows and columns of the tile. The bits of |x| have the order of the values, NaN
/// above all: where none shows up, they are the amax.
void find_amax(Workspace& work) {
  std::fill_n(work.column_size, kSide, std::int16_t{0});
  std::int16_t largest = 0;
  for (std::int64_t r = 0; r < kSide; ++r) {
    const std::uint16_t* values = work.values + r * kSide;
    std::int16_t row = 0;
    for (std::int64_t c = 0; c < kSide; ++c) {
      const auto size = static_cast<std::int16_t>(values[c] & 0x7FFF);
      work.column_size[c] = std::max(work.column_size[c], size);
      row = std::max(row, size);
    }
    work.rows.amax[r] = amax_of_size(row);
    largest = std::max(largest, row);
  }
  for (std::int64_t c = 0; c < kSide; ++c) work.columns.amax[c] = amax_of_size(work.column_size[c]);
  work.has_nan = largest > 0x7F80;
  for (std::int64_t i = 0; i < kSide && work.has_nan; ++i) {
    work.rows.amax[i] = amax_of_line(work.values + i * kSide, 1);
    work.columns.amax[i] = amax_of_line(work.values + i, kSide);
  }
}

/// Scales of the `count` blocks that start at row `first` of a copy, in block column `block`.
/// @returns whether all are plain (encode_lanes.h).
bool make_scales(BlockLine& line, const CopyTarget& target, const QuantizeSpec& spec,
                 std::int64_t slice, std::int64_t first, std::int64_t count, std::int64_t block) {
  const std::int64_t pitch = target.scale_inv.shape[2];
  const std::int64_t at = (slice * target.scale_inv.shape[1] + first) * pitch + block;
  const bool has_byte_scales = spec.has_byte_scales();
  bool all_plain = true;
  std::fill(line.scale + count, line.scale + kSide, 1.0f);
  for (std::int64_t i = 0; i < count; ++i) {
    const formats::BlockScale scale =
        formats::block_scale(spec.rule, spec.format, line.amax[i].value, line.amax[i].has_nan,
                             spec.eps, largest_of_dtype(DType::bfloat16), 0.0f);
    line.scale[i] = scale.scale;
    all_plain = all_plain && is_plain_scale(scale.scale);
    if (has_byte_scales) {
      static_cast<std::uint8_t*>(target.scale_inv.data)[at + i * pitch] =
          static_cast<std::uint8_t>(scale.code);
    } else {
      static_cast<float*>(target.scale_inv.data)[at + i * pitch] = scale.scale_inv;
    }
  }
  return all_plain;
}

std::uint8_t* codes_at(const CopyTarget& target, std::int64_t slice, std::int64_t row,
                       std::int64_t col) {
  return static_cast<std::uint8_t*>(target.codes.data) + slice * target.codes.strides[0] +
         row * target.codes.shape[2] + col;
}

template <class Format>
void encode_rowwise(const Workspace& work, const MatrixTile& tile, const CopyTarget& target) {
  alignas(64) std::uint8_t codes[kSide];
  for (std::int64_t r = 0; r < tile.rows; ++r) {
    const LaneScales scales = same_scale<Format>(work.rows.scale[r]);
    for (std::int64_t c = 0; c < kSide; c += kEncodeStep) {
      encode_step<Format>(work.values + r * kSide + c, scales, scales, codes + c);
    }
    std::copy_n(codes, tile.cols, codes_at(target, tile.slice, tile.row + r, tile.col));
  }
}

template <class Format>
void encode_columnwise(Workspace& work) {
  LaneScales scales[kSide / 16];
  for (std::int64_t c = 0; c < kSide; ++c) {
    LaneScales& lanes = scales[c / 16];
    (c % 2 == 0 ? lanes.even : lanes.odd)[c % 16 / 2] = work.columns.scale[c] * lift<Format>();
  }
  for (std::int64_t r = 0; r < kSide; ++r) {
    for (std::int64_t c = 0; c < kSide; c += kEncodeStep) {
      encode_step<Format>(work.values + r * kSide + c, scales[c / 16], scales[c / 16 + 1],
                          work.columnwise + r * kSide + c);
    }
  }
}

void store_transposed(const Workspace& work, const MatrixTile& tile, const CopyTarget& target) {
  alignas(64) std::uint8_t strip[16 * kSide];
  for (std::int64_t c = 0; c < tile.cols; c += 16) {
    for (std::int64_t r = 0; r < kSide; r += 16) {
      transpose_16x16(work.columnwise + r * kSide + c, kSide, strip + r, kSide);
    }
    for (std::int64_t i = 0; i < std::min<std::int64_t>(16, tile.cols - c); ++i) {
      std::copy_n(strip + i * kSide, tile.rows,
                  codes_at(target, tile.slice, tile.col + c + i, tile.row));
    }
  }
}

/// Codes of values or scales that encode_step does not take.
template <class Format>
void encode_singly(const Workspace& work, const MatrixTile& tile, const CopyTarget& rowwise,
                   const CopyTarget& columnwise) {
  const auto encoded = [](float x) {
    return static_cast<std::uint8_t>(formats::encode(x, Format::spec()));
  };
  for (std::int64_t r = 0; r < tile.rows; ++r) {
    for (std::int64_t c = 0; c < tile.cols; ++c) {
      const float x = formats::bf16_to_float(work.values[r * kSide + c]);
      if (rowwise.wanted()) {
        *codes_at(rowwise, tile.slice, tile.row + r, tile.col + c) =
            encoded(x * work.rows.scale[r]);
      }
      if (columnwise.wanted()) {
        *codes_at(columnwise, tile.slice, tile.col + c, tile.row + r) =
            encoded(x * work.columns.scale[c]);
      }
    }
  }
}

template <class Format>
void quantize_tile(const ConstView& x, const MatrixTile& tile, const CopyTarget& rowwise,
                   const CopyTarget& columnwise, const QuantizeSpec& spec) {
  Workspace work;
  load_values(x, tile, work);
  find_amax(work);
  bool is_plain = !work.has_nan;
  if (rowwise.wanted()) {
    is_plain =
        make_scales(work.rows, rowwise, spec, tile.slice, tile.row, tile.rows, tile.col / kSide) &&
        is_plain;
  }
  if (columnwise.wanted()) {
    is_plain = make_scales(work.columns, columnwise, spec, tile.slice, tile.col, tile.cols,
                           tile.row / kSide) &&
               is_plain;
  }
  if (!is_plain) return encode_singly<Format>(work, tile, rowwise, columnwise);
  if (rowwise.wanted()) encode_rowwise<Format>(work, tile, rowwise);
  if (!columnwise.wanted()) return;
  encode_columnwise<Format>(work);
  store_transposed(work, tile, columnwise);
}

}  // namespace

bool fits_quantize_tiles(const ConstView& x, const QuantizeSpec& spec) {
  const bool is_known = spec.format == formats::kE4M3 || spec.format == formats::kE5M2;
  return is_known && x.dtype == DType::bfloat16 && x.strides[2] == 1 &&
         spec.granularity == formats::kBlock1x128 && spec.rule != formats::ScaleRule::nvfp4 &&
         !spec.hadamard && !spec.stochastic;
}

void quantize_tiles(const ConstView& x, const CopyTarget& rowwise, const CopyTarget& columnwise,
                    const QuantizeSpec& spec) {
  const std::int64_t down = ceil_div(x.shape[1], kSide);
  const std::int64_t across = ceil_div(x.shape[2], kSide);
  const std::int64_t tiles = x.numel() == 0 ? 0 : x.shape[0] * down * across;
  auto* const run =
      spec.format == formats::kE4M3 ? &quantize_tile<formats::E4M3> : &quantize_tile<formats::E5M2>;
#pragma omp parallel for if (worth_threads(x.numel()))
  for (std::int64_t index = 0; index < tiles; ++index) {
    const std::int64_t row = index / across % down * kSide;
    const std::int64_t col = index % across * kSide;
    const MatrixTile tile{index / across / down, row, col, std::min(kSide, x.shape[1] - row),
                          std::min(kSide, x.shape[2] - col)};
    run(x, tile, rowwise, columnwise, spec);
  }
}

}  // namespace kitchen::reference
