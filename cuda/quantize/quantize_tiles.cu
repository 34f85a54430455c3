/// @file   cuda/quantize/quantize_tiles.cu
/// @brief  A block of threads quantizes one large scale block, a row or a square, that it keeps in
/// registers.
///
/// Idea     2^14 values fit in the registers of 256 threads: 64 each. The maximum goes through
///          shared memory, the values are read once.
/// Picture  128x128:  thread t: packs t, t + 256, ... of 2048
///          max of a thread ─> of a warp ─> shared memory ─> amax ─> codes
/// Needs    Unit column stride, rows and blocks of whole packs, x on 16 bytes, codes on 8, 256 to
///          2048 packs a block.
/// Roofline reads 2 B (bfloat16), writes 1 B an element. Memory-bound.
/// Expect   >= 70 % of the measured copy bandwidth from 2^24 elements on.
/// Measured see the benchmark of tools/gpu_test (written by the run, never typed here)
/// Next     Longer rows, shared between the blocks of a cluster.

#include "cuda/base/launch.h"
#include "cuda/quantize/encode_pack.cuh"
#include "cuda/quantize/quantize_fast.cuh"

namespace kitchen::cuda {

namespace {

constexpr int kTurns = 8;  // packs of a thread

template <class Format>
__global__ void __launch_bounds__(kThreads)
    quantize_tiles_kernel(const __grid_constant__ BlockJob job, Format format) {
  const MatrixSource& m = job.source;
  const std::int64_t across = job.blocks_across;
  const std::int64_t j = std::int64_t{blockIdx.x} % across;
  const std::int64_t i = std::int64_t{blockIdx.x} / across % job.blocks_down;
  const std::int64_t slice = std::int64_t{blockIdx.x} / across / job.blocks_down;
  const std::int64_t row = i * job.block_rows;
  const std::int64_t col = j * job.block_cols;
  const int packs_of_row = static_cast<int>(min(job.block_cols, m.cols - col)) / kPack;
  const int packs = packs_of_row * static_cast<int>(min(job.block_rows, m.rows - row));
  float values[kTurns][kPack] = {};
  AmaxBits amax;
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int pack = static_cast<int>(threadIdx.x) + turn * kThreads;
    if (pack >= packs) continue;
    load_pack(m.x,
              slice * m.strides[0] + (row + pack / packs_of_row) * m.strides[1] + col +
                  pack % packs_of_row * kPack,
              values[turn]);
  }
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) add_values(amax, values[turn]);
  const formats::BlockScale scale = scale_of(job, slice, reduce_block(amax));
  if (threadIdx.x == 0) put_scale(job, (slice * job.scale_rows + i) * job.scale_cols + j, scale);
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int pack = static_cast<int>(threadIdx.x) + turn * kThreads;
    if (pack >= packs) continue;
    const std::int64_t at = (slice * m.rows + row + pack / packs_of_row) * m.cols + col +
                            pack % packs_of_row * kPack;
    *reinterpret_cast<uint2*>(job.codes + at) = encode_pack(format, values[turn], scale.scale);
  }
}

bool fits(const BlockJob& job) {
  const MatrixSource& m = job.source;
  const std::int64_t packs = job.block_rows * (job.block_cols / kPack);
  return !job.is_per_tensor && !job.repeats_scale && !job.stochastic && !m.hadamard &&
         m.has_packs && m.cols % kPack == 0 && m.readable_cols == m.cols &&
         job.block_cols % kPack == 0 && packs >= kThreads && packs <= kThreads * kTurns &&
         reinterpret_cast<std::uintptr_t>(job.codes) % kPack == 0;
}

}  // namespace

bool quantize_tiles(const Stream& stream, const BlockJob& job) {
  if (!fits(job)) return false;
  const auto blocks =
      static_cast<unsigned>(job.source.slices * job.blocks_down * job.blocks_across);
  with_format(job.format, [&](auto format) {
    quantize_tiles_kernel<<<blocks, kThreads, 0, native(stream)>>>(job, format);
  });
  KITCHEN_CUDA_CHECK(cudaGetLastError());
  return true;
}

}  // namespace kitchen::cuda
