/// @file   cuda/quantize/quantize_lines.cu
/// @brief  Lines of 16, 32 or 128 columns, or one scale for all, of a dense matrix: 8 values a
/// thread, read once.
///
/// Idea     In a dense matrix whose rows are whole lines, the place of a pack of 8 is one number,
///          and so is that of its line's scale: no rows and columns are needed. Four packs a thread
///          are on their way at once.
/// Picture  1x128:  lane 0 [x0..x7]  lane 1 [x8..x15]  ...  lane 15 [x120..x127]
///                  └─ max of 8 ─ xor-shuffle 8, 4, 2, 1 ─> amax in all 16 lanes ─> 8 codes each
/// Needs    Dense rows of whole lines, x on 16 bytes, codes on 8; no transform, no random rounding.
///          Block = 256 threads.
/// Roofline reads 2 B (bfloat16), writes 1 B and the scales: 3.03 B for 1x128. Memory-bound.
/// Expect   >= 85 % of the measured copy bandwidth from 2^24 elements on.
/// Measured see the benchmark of tools/gpu_test (written by the run, never typed here)
/// Next     quantize_columns.cu, whose lines run down the columns.

#include "cuda/base/launch.h"
#include "cuda/quantize/encode_pack.cuh"
#include "cuda/quantize/quantize_fast.cuh"

namespace kitchen::cuda {

namespace {

constexpr int kTurns = 4;  // packs of a thread

struct Lines {
  std::int64_t packs, packs_of_slice;
  int lanes;  ///< threads of a line
};

template <class Format>
__global__ void __launch_bounds__(kThreads)
    quantize_lines_kernel(const __grid_constant__ BlockJob job, Format format, Lines lines) {
  const std::int64_t first = std::int64_t{blockIdx.x} * kThreads * kTurns + threadIdx.x;
  float values[kTurns][kPack] = {};
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const std::int64_t pack = first + turn * kThreads;
    if (pack < lines.packs) load_pack(job.source.x, pack * kPack, values[turn]);
  }
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const std::int64_t pack = first + turn * kThreads;
    AmaxBits amax;
    if (!job.is_per_tensor) {
      add_values(amax, values[turn]);
      amax = reduce_lanes(amax, lines.lanes);
    }
    if (pack >= lines.packs) continue;
    const bool is_single = lines.packs == lines.packs_of_slice;
    const std::int64_t slice = is_single ? 0 : pack / lines.packs_of_slice;
    const formats::BlockScale scale = scale_of(job, slice, amax);
    if (job.is_per_tensor) {
      if (pack == slice * lines.packs_of_slice) put_scale(job, slice, scale);
    } else if (threadIdx.x % lines.lanes == 0) {
      put_scale(job, pack / lines.lanes, scale);
    }
    *reinterpret_cast<uint2*>(job.codes + pack * kPack) =
        encode_pack(format, values[turn], scale.scale);
  }
}

bool fits(const BlockJob& job) {
  const MatrixSource& m = job.source;
  const bool is_dense = m.strides[2] == 1 && (m.rows == 1 || m.strides[1] == m.cols) &&
                        (m.slices == 1 || m.strides[0] == m.rows * m.cols);
  const bool has_lines = job.is_per_tensor ? m.rows * m.cols % kPack == 0
                                           : job.block_rows == 1 && m.cols % job.block_cols == 0 &&
                                                 (job.block_cols == 16 || job.block_cols == 32 ||
                                                  job.block_cols == 128);
  return is_dense && has_lines && !m.hadamard && !job.stochastic && m.readable_cols == m.cols &&
         is_aligned16(m.x.data) && reinterpret_cast<std::uintptr_t>(job.codes) % kPack == 0;
}

}  // namespace

bool quantize_lines(const Stream& stream, const BlockJob& job) {
  if (!fits(job)) return false;
  const std::int64_t of_slice = job.source.rows * job.source.cols / kPack;
  const Lines lines{job.source.slices * of_slice, of_slice,
                    job.is_per_tensor ? 1 : static_cast<int>(job.block_cols / kPack)};
  const auto blocks = static_cast<unsigned>(ceil_div(lines.packs, kThreads * kTurns));
  with_format(job.format, [&](auto format) {
    quantize_lines_kernel<<<blocks, kThreads, 0, native(stream)>>>(job, format, lines);
  });
  KITCHEN_CUDA_CHECK(cudaGetLastError());
  return true;
}

}  // namespace kitchen::cuda
