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
#include "cuda/quantize/quantize_job.cuh"

namespace kitchen::cuda {

namespace {

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
  __shared__ unsigned of_warps[kThreads / 32];
  amax = reduce_lanes(amax, 32);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = amax.number;
  __syncthreads();
  if (threadIdx.x != 0) return;
  unsigned largest = 0;
  for (const unsigned of_warp : of_warps) largest = max(largest, of_warp);
  atomicMax(result + slice, largest);
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
    matrix_amax_kernel<<<dim3(blocks_for(segments, kThreads, 132 * 8), slices), kThreads, 0,
                         native(stream)>>>(source, static_cast<unsigned*>(amax.data) + first);
    KITCHEN_CUDA_CHECK(cudaGetLastError());
  }
}

}  // namespace kitchen::cuda
