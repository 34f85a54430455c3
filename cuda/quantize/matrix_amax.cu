/// @file   cuda/quantize/matrix_amax.cu
/// @brief  The largest |x| of each slice: a maximum in each thread, each warp, then one atomic a
/// block.
///
/// Idea     A maximum does not depend on the order, and the bits of |x| as integers are in the
/// order of the
///          values: one integer atomicMax a block is exact and needs no second kernel.
/// Picture  thread: max over its segments ─ warp: xor-shuffle 16..1 ─ block: shared memory ─
/// atomicMax(slice) Needs    Nothing: any strides. The result is set to 0 on the stream first.
/// Roofline reads the matrix once: 2 B an element in bfloat16. Memory-bound.
/// Expect   >= 60 % of the measured read bandwidth for row-major input.
/// Measured see the contract run of tools/gpu_test (written by the run, never typed here)
/// Next     cuda/quantize/quantize_blocks.cu, which reads it right after.

#include "cuda/base/launch.h"
#include "cuda/quantize/quantize.h"
#include "cuda/quantize/encode_pack.cuh"

namespace kitchen::cuda {

namespace {

/// The largest of the block into `result`.
__device__ void put_largest(AmaxBits amax, unsigned* result) {
  __shared__ unsigned of_warps[kThreads / 32];
  amax = reduce_lanes(amax, 32);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = amax.number;
  __syncthreads();
  if (threadIdx.x != 0) return;
  unsigned largest = 0;
  for (const unsigned of_warp : of_warps) largest = max(largest, of_warp);
  atomicMax(result, largest);
}

__global__ void __launch_bounds__(kThreads)
    matrix_amax_kernel(const __grid_constant__ MatrixSource m, unsigned* result) {
  const std::int64_t slice = blockIdx.y;
  const std::int64_t per_row = (m.cols + kSegment - 1) / kSegment;
  const std::int64_t segments = m.rows * per_row;
  AmaxBits amax;
  for (std::int64_t s = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; s < segments;
       s += std::int64_t{gridDim.x} * blockDim.x) {
    // The lanes of a warp stay on neighbours in memory.
    const std::int64_t row = m.is_transposed() ? s % m.rows : s / per_row;
    const std::int64_t col = (m.is_transposed() ? s / m.rows : s % per_row) * kSegment;
    float v[kSegment];
    const auto count = static_cast<int>(min(std::int64_t{kSegment}, m.cols - col));
    load_segment(m, slice, row, col, count, v);
    for (const float value : v) amax.add(value);
  }
  put_largest(amax, result + slice);
}

/// A dense slice, whichever way round, is a run of packs: the order does not matter.
__global__ void __launch_bounds__(kThreads)
    run_amax_kernel(ConstElements x, std::int64_t slice_stride, std::int64_t packs,
                    unsigned* result) {
  constexpr int kTurns = 4;  // packs on their way at once
  const std::int64_t slice = blockIdx.y;
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  AmaxBits amax;
  for (std::int64_t p = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; p < packs;
       p += kTurns * step) {
    float values[kTurns][kPack] = {};
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      const std::int64_t pack = p + turn * step;
      if (pack < packs) load_pack(x, slice * slice_stride + pack * kPack, values[turn]);
    }
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) add_values(amax, values[turn]);
  }
  put_largest(amax, result + slice);
}

bool is_run_of_packs(const ConstView& x) {
  const std::int64_t rows = x.shape[1];
  const std::int64_t cols = x.shape[2];
  const bool is_dense = (x.strides[2] == 1 && x.strides[1] == cols) ||
                        (x.strides[1] == 1 && x.strides[2] == rows);
  return is_dense && rows * cols % kPack == 0 && x.strides[0] % kPack == 0 && is_aligned16(x.data);
}

}  // namespace

void matrix_amax(const Stream& stream, ConstView x, View amax, const QuantizeSpec& spec) {
  const std::int64_t cols = spec.hadamard ? ceil_div(x.shape[2], 16) * 16 : x.shape[2];
  if (x.shape[0] == 0) return;
  KITCHEN_CUDA_CHECK(cudaMemsetAsync(
      amax.data, 0, static_cast<std::size_t>(x.shape[0]) * sizeof(float), native(stream)));
  const std::int64_t segments = x.shape[1] * ceil_div(cols, kSegment);
  if (segments == 0) return;
  // Slices beyond the largest grid go in further launches.
  constexpr std::int64_t kMaxGridY = 65535;
  for (std::int64_t first = 0; first < x.shape[0]; first += kMaxGridY) {
    MatrixSource source = matrix_source(x, cols, spec.hadamard);
    source.x.data =
        static_cast<const std::uint8_t*>(x.data) + first * x.strides[0] * size_of(x.dtype);
    const auto slices = static_cast<unsigned>(min(kMaxGridY, x.shape[0] - first));
    auto* result = static_cast<unsigned*>(amax.data) + first;
    const dim3 grid(blocks_for(segments, kThreads, 132 * 8), slices);
    if (!spec.hadamard && is_run_of_packs(x)) {
      run_amax_kernel<<<grid, kThreads, 0, native(stream)>>>(
          source.x, x.strides[0], x.shape[1] * x.shape[2] / kPack, result);
    } else {
      matrix_amax_kernel<<<grid, kThreads, 0, native(stream)>>>(source, result);
    }
    KITCHEN_CUDA_CHECK(cudaGetLastError());
  }
}

}  // namespace kitchen::cuda
