#include "kitchen/formats/codec.h"
#include "kitchen/reference/matrix_tile.h"
#include "kitchen/reference/quantize.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace kitchen::reference {

namespace {

float* row_of_thread(std::int64_t size) {
  thread_local std::vector<float> row;
  if (static_cast<std::int64_t>(row.size()) < size) row.resize(static_cast<std::size_t>(size));
  return row.data();
}

std::int64_t block_extent(std::int64_t block, std::int64_t size) {
  return block == 0 ? std::max<std::int64_t>(size, 1) : block;
}

/// One row of dequantized values in fp32; with `rows` counting all slices.
void dequantize_row(const ops::QuantizedView& x, std::int64_t slice, std::int64_t row,
                    float* values) {
  const std::int64_t rows = x.codes.shape[1];
  const std::int64_t cols = x.codes.shape[2];
  const auto* codes = static_cast<const std::uint8_t*>(x.codes.data) + (slice * rows + row) * cols;
  const std::int64_t i = row / block_extent(x.spec.stored_scale_rows(), rows);
  const std::int64_t block_cols = block_extent(x.spec.granularity.cols, cols);
  const DecodeRow decode = row_decoder(x.spec.format);
  for (std::int64_t c = 0; c < cols; c += block_cols) {
    float scale = stored_scale(x, slice, i, c / block_cols);
    if (x.spec.rule == formats::ScaleRule::nvfp4) {
      scale = (scale * static_cast<const float*>(x.amax.data)[slice]) * (1.0f / 2688.0f);
    }
    decode(x.spec.format, codes + c, scale, values + c, std::min(block_cols, cols - c));
  }
}

/// Transposes 8x8 bytes, a row in each word: swaps blocks of 4, 2 and 1 across the diagonal.
void transpose_8x8(std::uint64_t* rows) {
  constexpr std::uint64_t kMasks[3] = {0x00000000FFFFFFFFu, 0x0000FFFF0000FFFFu,
                                       0x00FF00FF00FF00FFu};
  for (int stage = 0; stage < 3; ++stage) {
    const int size = 4 >> stage;
    for (int i = 0; i < 8; ++i) {
      if ((i & size) != 0) continue;
      const std::uint64_t above = rows[i];
      const std::uint64_t below = rows[i + size];
      const int shift = 8 * size;
      rows[i] = (above & kMasks[stage]) | ((below & kMasks[stage]) << shift);
      rows[i + size] = ((above >> shift) & kMasks[stage]) | (below & ~kMasks[stage]);
    }
  }
}

/// to[c, r] = from[r, c] for the rows and columns of one tile.
void transpose_tile(const std::uint8_t* from, std::uint8_t* to, std::int64_t rows,
                    std::int64_t cols, const MatrixTile& tile) {
  const std::int64_t row_end = tile.row + tile.rows;
  const std::int64_t col_end = tile.col + tile.cols;
  for (std::int64_t r = tile.row; r < row_end; r += 8) {
    for (std::int64_t c = tile.col; c < col_end; c += 8) {
      if (r + 8 <= row_end && c + 8 <= col_end) {
        std::uint64_t block[8];
        for (int i = 0; i < 8; ++i) std::memcpy(&block[i], from + (r + i) * cols + c, 8);
        transpose_8x8(block);
        for (int i = 0; i < 8; ++i) std::memcpy(to + (c + i) * rows + r, &block[i], 8);
        continue;
      }
      for (std::int64_t i = r; i < std::min(r + 8, row_end); ++i) {
        for (std::int64_t j = c; j < std::min(c + 8, col_end); ++j)
          to[j * rows + i] = from[i * cols + j];
      }
    }
  }
}

void transpose_bytes(const std::uint8_t* from, std::uint8_t* to, std::int64_t rows,
                     std::int64_t cols) {
  constexpr std::int64_t kTile = 64;
  const std::int64_t down = (rows + kTile - 1) / kTile;
  const std::int64_t across = (cols + kTile - 1) / kTile;
#pragma omp parallel for if (worth_threads(rows * cols))
  for (std::int64_t index = 0; index < down * across; ++index) {
    const std::int64_t row = index % down * kTile;
    const std::int64_t col = index / down * kTile;
    transpose_tile(from, to, rows, cols,
                   {0, row, col, std::min(kTile, rows - row), std::min(kTile, cols - col)});
  }
}

template <class Scale>
void transpose_scales(const ConstView& from, const View& to, std::int64_t slice,
                      std::int64_t repeat) {
  const auto* source = static_cast<const Scale*>(from.data) + slice * from.shape[1] * from.shape[2];
  auto* target = static_cast<Scale*>(to.data) + slice * to.shape[1] * to.shape[2];
  for (std::int64_t r = 0; r < to.shape[1]; ++r) {
    for (std::int64_t c = 0; c < to.shape[2]; ++c) {
      target[r * to.shape[2] + c] = source[c * repeat * from.shape[2] + r / repeat];
    }
  }
}

struct RowStats {
  double signal = 0.0;
  double noise = 0.0;
  std::int64_t saturated = 0;
  std::int64_t underflowed = 0;
  std::int64_t non_finite = 0;
};

/// The largest |x| / |largest code's value| that still rounds to the largest code.
double rounding_reach(const formats::FloatSpec& format) {
  const double largest = formats::max_value(format);
  const double step =
      format.is_integer() ? 1.0 : std::ldexp(1.0, format.max_exponent - format.mantissa_bits);
  return (largest + 0.5 * step) / largest;
}

RowStats stats_of_row(const float* x, const float* quantized, const std::uint8_t* codes,
                      std::int64_t n, const formats::FloatSpec& format) {
  RowStats stats;
  const double reach = rounding_reach(format);
  const auto magnitude_mask = format.sign_mask() - 1u;
  for (std::int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) {
      ++stats.non_finite;
      continue;
    }
    const double value = x[i];
    const double error = value - static_cast<double>(quantized[i]);
    stats.signal += value * value;
    stats.noise += error * error;
    if (value != 0.0 && quantized[i] == 0.0f) ++stats.underflowed;
    const std::uint32_t magnitude =
        format.is_integer()
            ? static_cast<std::uint32_t>(std::fabs(formats::decode(codes[i], format)))
            : codes[i] & magnitude_mask;
    const bool is_largest = magnitude == static_cast<std::uint32_t>(format.max_code);
    if (is_largest && std::fabs(value) > reach * std::fabs(static_cast<double>(quantized[i]))) {
      ++stats.saturated;
    }
  }
  return stats;
}

}  // namespace

bool worth_threads(std::int64_t elements) {
  return elements > 16384 && omp_in_parallel() == 0;
}

float stored_scale(const ops::QuantizedView& x, std::int64_t slice, std::int64_t i,
                   std::int64_t j) {
  const std::int64_t at = (slice * x.scale_inv.shape[1] + i) * x.scale_inv.shape[2] + j;
  if (!x.spec.has_byte_scales()) return static_cast<const float*>(x.scale_inv.data)[at];
  const std::uint8_t code = static_cast<const std::uint8_t*>(x.scale_inv.data)[at];
  if (x.spec.rule == formats::ScaleRule::nvfp4) return formats::decode(code, formats::kE4M3);
  return formats::e8m0_decode(code);
}

void dequantize(const Stream& /*stream*/, const ops::QuantizedView& x, View out) {
  const std::int64_t cols = out.shape[2];
  const std::int64_t rows = out.shape[0] * out.shape[1];
#pragma omp parallel for if (worth_threads(rows * cols))
  for (std::int64_t row = 0; row < rows; ++row) {
    float* values = row_of_thread(cols);
    dequantize_row(x, row / out.shape[1], row % out.shape[1], values);
    store_row(values, out.dtype, out.data, row * cols, cols);
  }
}

void transpose_quantized(const Stream& /*stream*/, const ops::QuantizedView& x, View codes,
                         View scale_inv) {
  const std::int64_t rows = x.codes.shape[1];
  const std::int64_t cols = x.codes.shape[2];
  // NVFP4 tiles store their scale once a row: 16 equal rows become 16 equal columns' one.
  const std::int64_t repeat = x.spec.rule == formats::ScaleRule::nvfp4 ? 16 : 1;
  for (std::int64_t slice = 0; slice < x.codes.shape[0]; ++slice) {
    const std::int64_t at = slice * rows * cols;
    transpose_bytes(static_cast<const std::uint8_t*>(x.codes.data) + at,
                    static_cast<std::uint8_t*>(codes.data) + at, rows, cols);
    if (x.spec.has_byte_scales()) {
      transpose_scales<std::uint8_t>(x.scale_inv, scale_inv, slice, repeat);
    } else {
      transpose_scales<float>(x.scale_inv, scale_inv, slice, repeat);
    }
  }
}

void quantization_stats(const Stream& /*stream*/, ConstView x, const ops::QuantizedView& quantized,
                        ops::QuantizationStats* stats) {
  const std::int64_t cols = quantized.codes.shape[2];
  const std::int64_t rows_of_slice = quantized.codes.shape[1];
  const std::int64_t rows = quantized.codes.shape[0] * rows_of_slice;
  std::vector<RowStats> of_rows(static_cast<std::size_t>(rows));
#pragma omp parallel for if (worth_threads(rows * cols))
  for (std::int64_t row = 0; row < rows; ++row) {
    float* values = row_of_thread(2 * cols);
    const std::int64_t slice = row / rows_of_slice;
    load_tile(x, {slice, row % rows_of_slice, 0, 1, cols}, values, cols);
    if (quantized.spec.hadamard) hadamard16_rows(values, 1, cols, cols, x.dtype);
    dequantize_row(quantized, slice, row % rows_of_slice, values + cols);
    of_rows[static_cast<std::size_t>(row)] = stats_of_row(
        values, values + cols, static_cast<const std::uint8_t*>(quantized.codes.data) + row * cols,
        cols, quantized.spec.format);
  }
  *stats = {};
  stats->num_elements = rows * cols;
  for (const RowStats& row : of_rows) {
    stats->signal_power += row.signal;
    stats->noise_power += row.noise;
    stats->num_saturated += row.saturated;
    stats->num_underflowed += row.underflowed;
    stats->num_non_finite += row.non_finite;
  }
}

void register_quantize_kernels(Backend& backend) {
  backend.add<ops::MatrixAmaxKernel>("exact", &matrix_amax);
  backend.add<ops::QuantizeKernel>("exact", &quantize);
  backend.add<ops::QuantizeBothKernel>("exact", &quantize_both);
  backend.add<ops::DequantizeKernel>("exact", &dequantize);
  backend.add<ops::TransposeQuantizedKernel>("exact", &transpose_quantized);
  backend.add<ops::QuantizationStatsKernel>("exact", &quantization_stats);
}

}  // namespace kitchen::reference
