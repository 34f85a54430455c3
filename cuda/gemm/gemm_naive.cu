/// @file   cuda/gemm/gemm_naive.cu
/// @brief  Rung 0: one thread computes one output, reading its row and its column from global
/// memory.
///
/// Idea     None: the loop of the definition, to measure everything else against.
/// Picture  thread (r, c): Σ_k A[r, k]·B[c, k]
/// Needs    Nothing: any strides and sizes.
/// Roofline 2·m·n·k FLOP; every operand element is asked for m or n times, from the caches at best.
/// Expect   Below 2 % of the fp32 peak.
/// Measured see the contract run of tools/gpu_test (written by the run, never typed here)
/// Next     gemm_tiled.cu: a block reads a tile once for all of its outputs.

#include "cuda/base/launch.h"
#include "cuda/gemm/gemm.h"
#include "cuda/gemm/gemm_operand.cuh"

namespace kitchen::cuda {

namespace {

__global__ void gemm_naive_kernel(GemmOperand a, GemmOperand b, GemmResult result, GemmSizes size) {
  const std::int64_t count = size.batch * size.m * size.n;
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const std::int64_t col = i % size.n;
    const std::int64_t row = i / size.n % size.m;
    const std::int64_t batch = i / size.n / size.m;
    float sum = 0.0f;
    for (std::int64_t k = 0; k < size.k; ++k) {
      sum = fmaf(a.at(batch, row, k), b.at(batch, col, k), sum);
    }
    result.put(batch, row, col, sum);
  }
}

}  // namespace

void gemm_naive(const Stream& stream, ConstView a, ConstView b, View d,
                const ops::GemmEpilogue& epilogue, void* /*workspace*/) {
  if (d.numel() == 0) return;
  gemm_naive_kernel<<<blocks_for(d.numel()), kThreads, 0, native(stream)>>>(
      gemm_operand(a), gemm_operand(b), gemm_result(d, epilogue), gemm_sizes(a, d));
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

}  // namespace kitchen::cuda
