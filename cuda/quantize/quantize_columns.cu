/// @file   cuda/quantize/quantize_columns.cu
/// @brief  Lines that run down the columns of memory: a tile is read along memory, and each thread
/// encodes 32 of a column.
///
/// Idea     Two jobs are the same work: the rows of a transposed matrix (the columnwise copy), and
///          blocks of 32 x 1 or 128 x 1. Reads want the one direction, the maximum the other;
///          shared memory turns the tile once, and no thread reads the source again. Only the place
///          of codes and scales differs.
/// Picture  memory (128 along the lines) x (64 lines) ─> tile[128][64] ─> thread (line, part)
///          └── 16 B a thread, across the lines ──┘      32 values ─ max ─> 32 codes
///          codes: 2 x 16 B along the line if transposed, else across the lines by a second tile
///          lines of 128: the maximum is that of 4 parts
/// Needs    A pitch of whole packs, x and codes on 16 bytes, lines of 16, 32, 128 elements or one
///          scale for all. Block = 256 threads, 40 KiB of shared memory.
/// Roofline reads 2 B (bfloat16), writes 1 B and the scales: 3.03 B for 1x128. Memory-bound.
/// Expect   >= 70 % of the measured copy bandwidth from 2^24 elements on.
/// Measured see the benchmark of tools/gpu_test (written by the run, never typed here)
/// Next     Row and column copies from one read.

#include "cuda/base/launch.h"
#include "cuda/quantize/encode_pack.cuh"
#include "cuda/quantize/quantize_fast.cuh"

namespace kitchen::cuda {

namespace {

constexpr int kTileLines = 64;
constexpr int kTileDepth = 128;  // elements of a line
constexpr int kParts = kThreads / kTileLines;
constexpr int kPartDepth = kTileDepth / kParts;
constexpr int kSegments = kPartDepth / kSegment;
constexpr int kPerTensor = 0;  // in place of the elements of a line
static_assert(kPartDepth == 32, "a part is one line of 32 elements or two of 16");

/// The matrix as lines: `depth` elements each, neighbours in memory across the lines.
struct Lines {
  ConstElements x;
  std::int64_t slices, count, depth;
  std::int64_t slice_stride, pitch;  ///< of x, in elements
  std::int64_t scale_stride_line, scale_stride_along;
  bool along;  ///< codes of a line are neighbours, too; else those of neighbouring lines
};

struct Tile {
  std::int64_t slice, line, at;
};

__device__ Tile tile_of_block(const Lines& lines) {
  const std::int64_t wide = (lines.count + kTileLines - 1) / kTileLines;
  const std::int64_t deep = (lines.depth + kTileDepth - 1) / kTileDepth;
  const std::int64_t index = blockIdx.x;
  return {index / (wide * deep), index % wide * kTileLines, index / wide % deep * kTileDepth};
}

__device__ void load_tile(const Lines& lines, const Tile& tile,
                          float (&values)[kTileDepth][kTileLines]) {
  constexpr int kPacksWide = kTileLines / kPack;
  const int line = static_cast<int>(threadIdx.x) % kPacksWide * kPack;
  for (int i = static_cast<int>(threadIdx.x) / kPacksWide; i < kTileDepth;
       i += kThreads / kPacksWide) {
    float pack[kPack] = {};
    if (tile.line + line < lines.count && tile.at + i < lines.depth) {
      load_pack(lines.x,
                tile.slice * lines.slice_stride + (tile.at + i) * lines.pitch + tile.line + line,
                pack);
    }
    store_pack({values[i], DType::float32}, line, pack);
  }
}

/// The amax of each segment's line, from those of all segments of the block.
template <int kLine>
__device__ void share_amax(AmaxBits (&amax)[kSegments]) {
  if constexpr (kLine == 32 || kLine == 128) {
    for (int i = 1; i < kSegments; ++i) amax[0].merge(amax[i]);
  }
  if constexpr (kLine == 128) {
    __shared__ AmaxBits parts[kParts][kTileLines];
    const int line = static_cast<int>(threadIdx.x) % kTileLines;
    parts[threadIdx.x / kTileLines][line] = amax[0];
    __syncthreads();  // all parts are written
    for (const auto& part : parts) amax[0].merge(part[line]);
  }
  if constexpr (kLine == 32 || kLine == 128) {
    for (int i = 1; i < kSegments; ++i) amax[i] = amax[0];
  }
}

template <int kLine>
__device__ void store_scale(const BlockJob& job, const Lines& lines, std::int64_t slice,
                            std::int64_t line, std::int64_t at, const formats::BlockScale& scale) {
  if constexpr (kLine == kPerTensor) {
    if (line == 0 && at == 0) put_scale(job, slice, scale);
  } else if (at % kLine == 0) {
    put_scale(job, slice * job.scale_rows * job.scale_cols + line * lines.scale_stride_line +
                       at / kLine * lines.scale_stride_along, scale);
  }
}

/// Codes of a tile, 16 neighbouring lines a thread at a time.
__device__ void store_across(const BlockJob& job, const Lines& lines, const Tile& tile,
                             const std::uint8_t (&codes)[kTileDepth][kTileLines]) {
  constexpr int kGroups = kTileLines / kSegment;
  for (int i = static_cast<int>(threadIdx.x); i < kTileDepth * kGroups; i += kThreads) {
    const std::int64_t at = tile.at + i / kGroups;
    const std::int64_t line = tile.line + i % kGroups * kSegment;
    if (at >= lines.depth || line >= lines.count) continue;
    *reinterpret_cast<uint4*>(job.codes + (tile.slice * lines.depth + at) * lines.count + line) =
        *reinterpret_cast<const uint4*>(&codes[i / kGroups][i % kGroups * kSegment]);
  }
}

template <class Format, int kLine>
__global__ void __launch_bounds__(kThreads)
    quantize_columns_kernel(const __grid_constant__ BlockJob job, Format format,
                            const __grid_constant__ Lines lines) {
  __shared__ alignas(16) float tile_values[kTileDepth][kTileLines];
  __shared__ alignas(16) std::uint8_t tile_codes[kTileDepth][kTileLines];
  const Tile tile = tile_of_block(lines);
  load_tile(lines, tile, tile_values);
  __syncthreads();  // the tile is whole
  const int own_line = static_cast<int>(threadIdx.x) % kTileLines;
  const int own_at = static_cast<int>(threadIdx.x) / kTileLines * kPartDepth;
  float v[kSegments][kSegment];  // (2, 16) values of one line
  AmaxBits amax[kSegments];
#pragma unroll
  for (int i = 0; i < kSegments; ++i) {
#pragma unroll
    for (int c = 0; c < kSegment; ++c) v[i][c] = tile_values[own_at + i * kSegment + c][own_line];
    if (kLine != kPerTensor) add_values(amax[i], v[i]);
  }
  share_amax<kLine>(amax);
  const std::int64_t line = tile.line + own_line;
#pragma unroll
  for (int i = 0; i < kSegments; ++i) {
    const std::int64_t at = tile.at + own_at + i * kSegment;
    if (line >= lines.count || at >= lines.depth) continue;
    const formats::BlockScale scale = scale_of(job, tile.slice, amax[i]);
    store_scale<kLine>(job, lines, tile.slice, line, at, scale);
    const uint2 low = encode_pack(format, v[i], scale.scale);
    const uint2 high = encode_pack(format, v[i] + kPack, scale.scale);
    const uint4 codes = make_uint4(low.x, low.y, high.x, high.y);
    if (lines.along) {
      *reinterpret_cast<uint4*>(job.codes + (tile.slice * lines.count + line) * lines.depth + at) =
          codes;
      continue;
    }
    const std::uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
#pragma unroll
    for (int c = 0; c < kSegment; ++c) {
      tile_codes[own_at + i * kSegment + c][own_line] =
          static_cast<std::uint8_t>(words[c / 4] >> (c % 4 * 8));
    }
  }
  if (lines.along) return;
  __syncthreads();  // all codes of the tile are there
  store_across(job, lines, tile, tile_codes);
}

/// The lines of the job: its rows where the source is transposed, else its columns.
Lines lines_of(const BlockJob& job) {
  const MatrixSource& m = job.source;
  if (m.is_transposed()) {
    return {m.x, m.slices, m.rows, m.cols, m.strides[0], m.strides[2], job.scale_cols, 1, true};
  }
  return {m.x, m.slices, m.cols, m.rows, m.strides[0], m.strides[1], 1, job.scale_cols, false};
}

bool fits(const BlockJob& job, const Lines& lines) {
  const MatrixSource& m = job.source;
  const bool transposed = m.is_transposed();
  const std::int64_t line = transposed ? job.block_cols : job.block_rows;
  const bool has_lines = (line == 16 || line == 32 || line == 128) && lines.depth % line == 0 &&
                         (transposed ? job.block_rows : job.block_cols) == 1;
  const bool has_neighbours = (transposed ? m.strides[1] : m.strides[2]) == 1;
  const std::int64_t group = lines.along ? kPack : kSegment;
  return has_neighbours && (has_lines || (job.is_per_tensor && transposed)) &&
         lines.count % group == 0 && lines.depth % kSegment == 0 && lines.pitch % kPack == 0 &&
         lines.slice_stride % kPack == 0 && !m.hadamard && !job.stochastic && !job.repeats_scale &&
         is_aligned16(m.x.data) && is_aligned16(job.codes);
}

template <class Format>
void launch(const Stream& stream, const BlockJob& job, const Lines& lines, const Format& format) {
  const auto tiles = static_cast<unsigned>(lines.slices * ceil_div(lines.count, kTileLines) *
                                           ceil_div(lines.depth, kTileDepth));
  const auto start = [&](auto* kernel) {
    kernel<<<tiles, kThreads, 0, native(stream)>>>(job, format, lines);
  };
  if (job.is_per_tensor) return start(&quantize_columns_kernel<Format, kPerTensor>);
  const std::int64_t line = lines.along ? job.block_cols : job.block_rows;
  if (line == 16) return start(&quantize_columns_kernel<Format, 16>);
  if (line == 32) return start(&quantize_columns_kernel<Format, 32>);
  start(&quantize_columns_kernel<Format, 128>);
}

}  // namespace

bool quantize_columns(const Stream& stream, const BlockJob& job) {
  const Lines lines = lines_of(job);
  if (!fits(job, lines)) return false;
  with_format(job.format, [&](auto format) { launch(stream, job, lines, format); });
  KITCHEN_CUDA_CHECK(cudaGetLastError());
  return true;
}

}  // namespace kitchen::cuda
