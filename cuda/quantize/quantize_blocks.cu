/// @file   cuda/quantize/quantize_blocks.cu
/// @brief  A team of lanes quantizes one scale block of any shape: amax by shuffles, then scale and
/// cast.
///
/// Idea     One kernel for every granularity: a block is a list of segments of 16 columns, which
/// its team
///          shares out. Teams have 1 to 32 lanes of a warp, or all threads of a block. Where a lane
///          has one segment, it stays in registers between the two passes.
/// Picture  1x128, row-major:   lane 0 [x0..x15]  lane 1 [x16..x31]  ...  lane 7 [x112..x127]
///                              └─ local max ─ xor-shuffle 4, 2, 1 ─> amax in all 8 lanes ─> 16
///                              codes each
///          transposed input:   a lane a block, so that the lanes of a warp read neighbouring rows
/// Needs    Nothing: edges, any strides and unaligned starts are right. Aligned codes are stored 16
/// at a time. Roofline reads 2 B (bfloat16), writes 1 B and the scales: 3.03 B for 1x128.
/// Memory-bound. Expect   >= 50 % of the measured copy bandwidth for 1x128 and 1x32 of row-major
/// bfloat16; 128x128 reads
///          its block twice, the second time from the L1 cache.
/// Measured see the contract run of tools/gpu_test (written by the run, never typed here)
/// Next     quantize_lines.cu and quantize_columns.cu, for the shapes that matter.

#include "kitchen/base/rng.h"

#include "cuda/base/launch.h"
#include "cuda/quantize/quantize.h"
#include "cuda/quantize/quantize_fast.cuh"

#include <algorithm>

namespace kitchen::cuda {

namespace {

/// The block that a team works on. A transposed source is walked down the rows, so that the lanes
/// of a warp stay on neighbours in memory.
struct Block {
  std::int64_t slice, i, j, row, col, rows, cols;
};

__device__ Block block_at(const BlockJob& job, std::int64_t index) {
  const bool down = job.source.is_transposed();
  const std::int64_t fast = down ? job.blocks_down : job.blocks_across;
  const std::int64_t slow = down ? job.blocks_across : job.blocks_down;
  const std::int64_t a = index % fast;
  const std::int64_t b = index / fast % slow;
  Block block{};
  block.slice = index / fast / slow;
  block.i = down ? a : b;
  block.j = down ? b : a;
  block.row = block.i * job.block_rows;
  block.col = block.j * job.block_cols;
  block.rows = min(job.block_rows, job.source.rows - block.row);
  block.cols = min(job.block_cols, job.source.cols - block.col);
  return block;
}

/// The largest over the team.
__device__ AmaxBits reduce_team(AmaxBits amax, int team) {
  return team <= 32 ? reduce_lanes(amax, team) : reduce_block(amax);
}

/// By one thread of the team, on as many rows as repeat the scale.
__device__ void store_scale(const BlockJob& job, const Block& block,
                            const formats::BlockScale& scale) {
  if (job.is_per_tensor) {
    if (block.row == 0 && block.col == 0) put_scale(job, block.slice, scale);
    return;
  }
  const std::int64_t first = job.repeats_scale ? block.row : block.i;
  const std::int64_t count = job.repeats_scale ? block.rows : 1;
  for (std::int64_t row = first; row < first + count; ++row) {
    put_scale(job, (block.slice * job.scale_rows + row) * job.scale_cols + block.j, scale);
  }
}

/// Words of the random stream of stochastic rounding, four at a time (S2.2).
struct RoundingWords {
  const ops::RoundingStream& stream;
  std::uint64_t block = ~std::uint64_t{0};
  Words4 words{};

  __device__ std::uint32_t at(std::uint64_t index) {
    if (index >> 2 != block) {
      block = index >> 2;
      const std::uint32_t high =
          (std::uint32_t{stream.usage} << 24) | static_cast<std::uint32_t>(stream.offset >> 32);
      words =
          philox4x32({{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                       static_cast<std::uint32_t>(stream.offset), high}},
                     stream.seed);
    }
    const std::uint64_t i = index & 3;
    return i == 0 ? words.v[0] : i == 1 ? words.v[1] : i == 2 ? words.v[2] : words.v[3];
  }
};

template <class Format>
__device__ void encode_segment(const BlockJob& job, const Format& format, std::int64_t at,
                               int count, const float (&v)[kSegment], float scale) {
  std::uint32_t words[4] = {};
  RoundingWords random{job.rounding};
#pragma unroll
  for (int i = 0; i < kSegment; ++i) {
    const float scaled = v[i] * scale;
    // The index counts all slices, so that no two of them draw the same words.
    const std::uint32_t code =
        job.stochastic && i < count
            ? formats::encode_e2m1_stochastic(scaled, random.at(static_cast<std::uint64_t>(at + i)))
            : formats::encode(scaled, format.spec());
    words[i / 4] |= (code & 0xFFu) << (i % 4 * 8);
  }
  std::uint8_t* to = job.codes + at;
  if (count == kSegment && reinterpret_cast<std::uintptr_t>(to) % 16 == 0) {
    *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
    return;
  }
#pragma unroll
  for (int i = 0; i < kSegment; ++i) {
    if (i < count) to[i] = static_cast<std::uint8_t>(words[i / 4] >> (i % 4 * 8));
  }
}

template <class Format>
__global__ void __launch_bounds__(kThreads)
    quantize_blocks_kernel(const __grid_constant__ BlockJob job, Format format) {
  const int lane = static_cast<int>(threadIdx.x) % job.team;
  const int teams = static_cast<int>(blockDim.x) / job.team;
  const std::int64_t num_blocks = job.source.slices * job.blocks_down * job.blocks_across;
  // All threads take as many turns, since they meet in shuffles: beyond the last block a team is
  // idle.
  for (std::int64_t first = std::int64_t{blockIdx.x} * teams; first < num_blocks;
       first += std::int64_t{gridDim.x} * teams) {
    const std::int64_t index = first + static_cast<int>(threadIdx.x) / job.team;
    const bool is_active = index < num_blocks;
    const Block block = block_at(job, is_active ? index : 0);
    const std::int64_t per_row = (block.cols + kSegment - 1) / kSegment;
    const std::int64_t segments = is_active ? block.rows * per_row : 0;
    float v[kSegment];
    AmaxBits amax;
    const auto load = [&](std::int64_t s, std::int64_t* at) {
      const std::int64_t row = block.row + s / per_row;
      const std::int64_t col = block.col + s % per_row * kSegment;
      const auto count =
          static_cast<int>(min(std::int64_t{kSegment}, block.col + block.cols - col));
      load_segment(job.source, block.slice, row, col, count, v);
      *at = (block.slice * job.source.rows + row) * job.source.cols + col;
      return count;
    };
    std::int64_t at = 0;
    int count = 0;
    if (!job.is_per_tensor) {
      for (std::int64_t s = lane; s < segments; s += job.team) {
        count = load(s, &at);
        for (const float value : v) amax.add(value);
      }
      amax = reduce_team(amax, job.team);
    }
    const formats::BlockScale scale = scale_of(job, block.slice, amax);
    if (is_active && lane == 0) store_scale(job, block, scale);
    const bool is_loaded = !job.is_per_tensor && segments <= job.team;
    for (std::int64_t s = lane; s < segments; s += job.team) {
      if (!is_loaded) count = load(s, &at);
      encode_segment(job, format, at, count, v, scale.scale);
    }
  }
}

/// Whole-extent scales of slices that have no element.
__global__ void empty_scales_kernel(const __grid_constant__ BlockJob job) {
  const std::int64_t per_slice = job.scale_rows * job.scale_cols;
  const std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= job.source.slices * per_slice) return;
  put_scale(job, at, scale_of(job, at / per_slice, AmaxBits{}));
}

float largest_of(DType dtype) {
  if (dtype == DType::bfloat16) return float_from_bits(0x7F7F0000u);
  return dtype == DType::float16 ? 65504.0f : formats::kFloatMax;
}

/// Threads that share a block: its segments rounded up to a power of two; one where the lanes of a
/// warp should take neighbouring blocks instead.
int team_for(const BlockJob& job) {
  const bool is_narrow = job.block_cols < kSegment || job.source.is_transposed();
  const std::int64_t segments = job.block_rows * ceil_div(job.block_cols, kSegment);
  if (segments > 512) return kThreads;
  if (is_narrow && segments <= 128) return 1;
  int team = 1;
  while (team < 32 && team < segments) team *= 2;
  return team;
}

BlockJob make_job(const ConstView& x, const View& codes, const View& scale_inv,
                  const QuantizeSpec& spec, const ops::RoundingStream& rounding) {
  BlockJob job{};
  job.source = matrix_source(x, codes.shape[2], spec.hadamard);
  job.codes = static_cast<std::uint8_t*>(codes.data);
  job.scale_inv = scale_inv.data;
  job.scale_rows = scale_inv.shape[1];
  job.scale_cols = scale_inv.shape[2];
  job.is_per_tensor = spec.granularity.is_per_tensor();
  // One scale for all: blocks of one warp, which need no amax of their own.
  const formats::ScaleGranularity block =
      job.is_per_tensor ? formats::ScaleGranularity{1, job.source.is_transposed() ? 16 : 512}
                        : spec.granularity;
  job.block_rows = block.rows == 0 ? std::max<std::int64_t>(codes.shape[1], 1) : block.rows;
  job.block_cols = block.cols == 0 ? std::max<std::int64_t>(codes.shape[2], 1) : block.cols;
  job.blocks_down = ceil_div(codes.shape[1], job.block_rows);
  job.blocks_across = ceil_div(codes.shape[2], job.block_cols);
  job.format = spec.format;
  job.rule = spec.rule;
  job.eps = spec.eps;
  job.largest_input = largest_of(x.dtype);
  job.rounding = rounding;
  job.has_byte_scales = spec.has_byte_scales();
  job.repeats_scale = spec.stored_scale_rows() != spec.granularity.rows;
  job.stochastic = spec.stochastic;
  job.team = team_for(job);
  return job;
}

}  // namespace

void quantize(const Stream& stream, ConstView x, ConstView matrix_amax, ConstView scale, View codes,
              View scale_inv, const QuantizeSpec& spec, const ops::RoundingStream& rounding) {
  BlockJob job = make_job(x, codes, scale_inv, spec, rounding);
  job.matrix_amax = static_cast<const float*>(matrix_amax.data);
  job.given_scale = static_cast<const float*>(scale.data);
  if (codes.numel() == 0) {
    if (scale_inv.numel() == 0) return;
    empty_scales_kernel<<<static_cast<unsigned>(ceil_div(scale_inv.numel(), kThreads)), kThreads, 0,
                          native(stream)>>>(job);
    KITCHEN_CUDA_CHECK(cudaGetLastError());
    return;
  }
  if (quantize_lines(stream, job) || quantize_columns(stream, job) || quantize_tiles(stream, job)) {
    return;
  }
  const std::int64_t blocks = job.source.slices * job.blocks_down * job.blocks_across;
  with_format(spec.format, [&](auto format) {
    quantize_blocks_kernel<<<blocks_for(blocks, kThreads / job.team), kThreads, 0,
                             native(stream)>>>(job, format);
  });
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

}  // namespace kitchen::cuda
