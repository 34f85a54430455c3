#include "kitchen/reference/quantize.h"

#include "kitchen/base/rng.h"
#include "kitchen/formats/codec.h"
#include "kitchen/reference/bfloat16_encoder.h"
#include "kitchen/reference/matrix_tile.h"
#include "kitchen/reference/parallel.h"
#include "kitchen/reference/quantize_tiles.h"
#include "kitchen/reference/tiling.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace kitchen::reference {

namespace {

float* scratch_of_thread(std::int64_t size) {
  thread_local std::vector<float> scratch;
  if (static_cast<std::int64_t>(scratch.size()) < size)
    scratch.resize(static_cast<std::size_t>(size));
  return scratch.data();
}

/// fp32 values of a tile with `pitch` floats a row.
struct TileValues {
  const float* data;
  std::int64_t pitch;
};

TileValues load_transformed(const ConstView& x, const QuantizeSpec& spec, const MatrixTile& tile,
                            const Tiling& tiling) {
  if (x.dtype == DType::float32 && x.strides[2] == 1 && !spec.hadamard) {
    return {static_cast<const float*>(x.data) + tile.slice * x.strides[0] +
                tile.row * x.strides[1] + tile.col,
            x.strides[1]};
  }
  float* values = scratch_of_thread(tiling.rows * tiling.pitch());
  load_tile(x, tile, values, tiling.pitch());
  if (spec.hadamard) hadamard16_rows(values, tile.rows, tile.cols, tiling.pitch(), x.dtype);
  return {values, tiling.pitch()};
}

Amax amax_of_block(const TileValues& values, std::int64_t rows, std::int64_t cols) {
  Amax amax;
  for (std::int64_t r = 0; r < rows; ++r) {
    const Amax row = amax_of(values.data + r * values.pitch, cols);
    amax.value = std::max(amax.value, row.value);
    amax.has_nan = amax.has_nan || row.has_nan;
  }
  return amax;
}

/// The largest |x| of a tile, without widening it first where that is not needed.
float amax_of_tile(const ConstView& x, const QuantizeSpec& spec, const MatrixTile& tile,
                   const Tiling& tiling) {
  if (x.dtype == DType::float32 || x.strides[2] != 1 || spec.hadamard) {
    return amax_of_block(load_transformed(x, spec, tile, tiling), tile.rows, tile.cols).value;
  }
  const auto* values = static_cast<const std::uint16_t*>(x.data) + tile.slice * x.strides[0] +
                       tile.row * x.strides[1] + tile.col;
  float largest = 0.0f;
  for (std::int64_t r = 0; r < tile.rows; ++r) {
    largest = std::max(largest, amax_of_halves(values + r * x.strides[1], tile.cols, x.dtype));
  }
  return largest;
}

/// Everything that the quantization of a tile reads besides its values.
struct QuantizeJob {
  ConstView x;
  ConstView matrix_amax;
  ConstView scale;
  View codes;
  View scale_inv;
  const QuantizeSpec& spec;
  ops::RoundingStream rounding;
  Tiling tiling;
  EncodeRow encode;
  EncodeBfloat16Row encode_bfloat16;  ///< nullptr unless x can be encoded as it lies in memory
  bool has_byte_scales;
};

EncodeBfloat16Row direct_encoder(const ConstView& x, const QuantizeSpec& spec) {
  const bool is_direct = x.dtype == DType::bfloat16 && x.strides[2] == 1 &&
                         spec.granularity.is_per_tensor() && !spec.hadamard && !spec.stochastic;
  return is_direct ? bfloat16_row_encoder(spec.format) : nullptr;
}

formats::BlockScale scale_of_block(const QuantizeJob& job, std::int64_t slice, const Amax& amax) {
  if (job.scale.defined()) {
    const float scale = static_cast<const float*>(job.scale.data)[slice];
    return {scale, 1.0f / scale, 0};
  }
  const float matrix_amax =
      job.matrix_amax.defined() ? static_cast<const float*>(job.matrix_amax.data)[slice] : 0.0f;
  return formats::block_scale(job.spec.rule, job.spec.format, amax.value, amax.has_nan,
                              job.spec.eps, largest_of_dtype(job.x.dtype), matrix_amax);
}

/// Stores the scale of block (i, j), on as many rows as repeat it.
void store_scale(const QuantizeJob& job, const MatrixTile& block, std::int64_t i, std::int64_t j,
                 const formats::BlockScale& scale) {
  const bool is_repeated = job.spec.stored_scale_rows() != job.spec.granularity.rows;
  const std::int64_t first = is_repeated ? block.row : i;
  const std::int64_t count = is_repeated ? block.rows : 1;
  for (std::int64_t row = first; row < first + count; ++row) {
    const std::int64_t at =
        block.slice * job.scale_inv.strides[0] + row * job.scale_inv.shape[2] + j;
    if (job.has_byte_scales) {
      static_cast<std::uint8_t*>(job.scale_inv.data)[at] = static_cast<std::uint8_t>(scale.code);
    } else {
      static_cast<float*>(job.scale_inv.data)[at] = scale.scale_inv;
    }
  }
}

void encode_row_stochastic(const float* values, float scale, std::uint8_t* codes, std::int64_t n,
                           const ops::RoundingStream& rounding, std::int64_t first_index) {
  constexpr std::int64_t kChunk = 64;
  std::uint32_t words[kChunk + 4];
  const auto high =
      (std::uint32_t{rounding.usage} << 24) | static_cast<std::uint32_t>(rounding.offset >> 32);
  for (std::int64_t start = 0; start < n; start += kChunk) {
    const std::int64_t count = std::min(kChunk, n - start);
    const auto first = static_cast<std::uint64_t>(first_index + start);
    const std::uint64_t skipped = first & 3;
    const std::int64_t blocks = (static_cast<std::int64_t>(skipped) + count + 3) / 4;
    for (std::int64_t i = 0; i < blocks; ++i) {
      const std::uint64_t block = (first >> 2) + static_cast<std::uint64_t>(i);
      const Words4 out =
          philox4x32({{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                       static_cast<std::uint32_t>(rounding.offset), high}},
                     rounding.seed);
      std::copy(out.v, out.v + 4, words + 4 * i);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      codes[start + i] = static_cast<std::uint8_t>(formats::encode_e2m1_stochastic(
          values[start + i] * scale, words[skipped + static_cast<std::uint64_t>(i)]));
    }
  }
}

void encode_block(const QuantizeJob& job, const MatrixTile& block, const TileValues& values,
                  float scale) {
  const std::int64_t cols = job.codes.shape[2];
  auto* slice = static_cast<std::uint8_t*>(job.codes.data) + block.slice * job.codes.strides[0];
  for (std::int64_t r = 0; r < block.rows; ++r) {
    const std::int64_t at = (block.row + r) * cols + block.col;
    const float* row = values.data + r * values.pitch;
    if (job.spec.stochastic) {
      // The index counts all slices, so that no two of them draw the same words.
      encode_row_stochastic(row, scale, slice + at, block.cols, job.rounding,
                            block.slice * job.codes.strides[0] + at);
    } else {
      job.encode(job.spec.format, row, scale, slice + at, block.cols);
    }
  }
}

void encode_tile_directly(const QuantizeJob& job, const MatrixTile& tile, float scale) {
  const auto* from = static_cast<const std::uint16_t*>(job.x.data) +
                     tile.slice * job.x.strides[0] + tile.row * job.x.strides[1] + tile.col;
  auto* to = static_cast<std::uint8_t*>(job.codes.data) + tile.slice * job.codes.strides[0] +
             tile.row * job.codes.shape[2] + tile.col;
  for (std::int64_t r = 0; r < tile.rows; ++r) {
    job.encode_bfloat16(from + r * job.x.strides[1], scale, to + r * job.codes.shape[2], tile.cols);
  }
}

void quantize_tile_of_tensor(const QuantizeJob& job, const MatrixTile& tile) {
  const auto* amax = static_cast<const float*>(job.matrix_amax.data);
  const Amax whole{job.scale.defined() ? 0.0f : amax[tile.slice], false};
  const float scale = scale_of_block(job, tile.slice, whole).scale;
  if (job.encode_bfloat16 != nullptr) {
    encode_tile_directly(job, tile, scale);
  } else {
    encode_block(job, tile, load_transformed(job.x, job.spec, tile, job.tiling), scale);
  }
}

void quantize_tile(const QuantizeJob& job, const MatrixTile& tile) {
  if (job.spec.granularity.is_per_tensor()) return quantize_tile_of_tensor(job, tile);
  const TileValues values = load_transformed(job.x, job.spec, tile, job.tiling);
  const std::int64_t rows = job.spec.granularity.rows == 0 ? tile.rows : job.spec.granularity.rows;
  const std::int64_t cols = job.spec.granularity.cols == 0 ? tile.cols : job.spec.granularity.cols;
  const std::int64_t first_col = tile.col / cols;
  std::int64_t i = tile.row / rows;
  for (std::int64_t r = 0; r < tile.rows; r += rows, ++i) {
    std::int64_t j = first_col;
    for (std::int64_t c = 0; c < tile.cols; c += cols, ++j) {
      const MatrixTile block{tile.slice, tile.row + r, tile.col + c, std::min(rows, tile.rows - r),
                             std::min(cols, tile.cols - c)};
      const TileValues first{values.data + r * values.pitch + c, values.pitch};
      const formats::BlockScale scale =
          scale_of_block(job, tile.slice, amax_of_block(first, block.rows, block.cols));
      store_scale(job, block, i, j, scale);
      encode_block(job, block, first, scale.scale);
    }
  }
}

/// Per-tensor scales, and the whole-extent scales of matrices that have no element.
void store_scales_without_elements(const QuantizeJob& job) {
  const bool is_empty = job.codes.numel() == 0;
  if (!job.spec.granularity.is_per_tensor() && !is_empty) return;
  const std::int64_t per_slice = job.scale_inv.shape[1] * job.scale_inv.shape[2];
  for (std::int64_t slice = 0; slice < job.scale_inv.shape[0]; ++slice) {
    Amax amax;
    if (job.matrix_amax.defined())
      amax.value = static_cast<const float*>(job.matrix_amax.data)[slice];
    const formats::BlockScale scale = scale_of_block(job, slice, amax);
    for (std::int64_t i = 0; i < per_slice; ++i) {
      const std::int64_t at = slice * per_slice + i;
      if (job.has_byte_scales) {
        static_cast<std::uint8_t*>(job.scale_inv.data)[at] = static_cast<std::uint8_t>(scale.code);
      } else {
        static_cast<float*>(job.scale_inv.data)[at] = scale.scale_inv;
      }
    }
  }
}

ConstView transposed(ConstView x) {
  std::swap(x.shape[1], x.shape[2]);
  std::swap(x.strides[1], x.strides[2]);
  return x;
}

}  // namespace

float largest_of_dtype(DType dtype) {
  if (dtype == DType::bfloat16) return float_from_bits(0x7F7F0000u);
  return dtype == DType::float16 ? 65504.0f : formats::kFloatMax;
}

void matrix_amax(const Stream& /*stream*/, ConstView x, View amax, const QuantizeSpec& spec) {
  QuantizeSpec free = spec;
  free.granularity = formats::kPerTensor;
  const std::int64_t cols = spec.hadamard ? ceil_div(x.shape[2], 16) * 16 : x.shape[2];
  const Tiling tiling = make_tiling(x, free, cols);
  auto* result = static_cast<float*>(amax.data);
  for (std::int64_t slice = 0; slice < x.shape[0]; ++slice) {
    float largest = 0.0f;
    const std::int64_t tiles = tiling.num_rows * tiling.num_cols;
#pragma omp parallel for reduction(max : largest) if (worth_threads(x.shape[1] * x.shape[2]))
    for (std::int64_t index = 0; index < tiles; ++index) {
      const MatrixTile tile = tile_at(tiling, slice * tiles + index, x.shape[1], cols);
      largest = std::max(largest, amax_of_tile(x, spec, tile, tiling));
    }
    result[slice] = largest;
  }
}

void quantize(const Stream& /*stream*/, ConstView x, ConstView matrix_amax, ConstView scale,
              View codes, View scale_inv, const QuantizeSpec& spec,
              const ops::RoundingStream& rounding) {
  if (fits_quantize_tiles(x, spec)) return quantize_tiles(x, {codes, scale_inv}, {}, spec);
  if (fits_quantize_tiles(transposed(x), spec)) {
    return quantize_tiles(transposed(x), {}, {codes, scale_inv}, spec);
  }
  const QuantizeJob job{x,
                        matrix_amax,
                        scale,
                        codes,
                        scale_inv,
                        spec,
                        rounding,
                        make_tiling(x, spec, codes.shape[2]),
                        row_encoder(spec.format),
                        direct_encoder(x, spec),
                        spec.has_byte_scales()};
  store_scales_without_elements(job);
  const std::int64_t tiles = codes.numel() == 0 ? 0 : job.tiling.size();
#pragma omp parallel for if (worth_threads(codes.numel()))
  for (std::int64_t index = 0; index < tiles; ++index) {
    quantize_tile(job, tile_at(job.tiling, index, codes.shape[1], codes.shape[2]));
  }
}

void quantize_both(const Stream& stream, ConstView x, View codes, View scale_inv,
                   View transposed_codes, View transposed_scale_inv, const QuantizeSpec& spec) {
  if (fits_quantize_tiles(x, spec)) {
    return quantize_tiles(x, {codes, scale_inv}, {transposed_codes, transposed_scale_inv}, spec);
  }
  quantize(stream, x, {}, {}, codes, scale_inv, spec, {});
  quantize(stream, transposed(x), {}, {}, transposed_codes, transposed_scale_inv, spec, {});
}

}  // namespace kitchen::reference
