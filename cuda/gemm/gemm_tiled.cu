/// @file   cuda/gemm/gemm_tiled.cu
/// @brief  Rung 2: a block keeps tiles of A and B in shared memory, a thread 4 x 4 outputs in
/// registers.
///
/// Idea     An element of A is read from global memory once for 64 columns, and from shared memory
/// once for 4. Picture          B tile (64 x 16)
///                  ┌────────────┐      thread (ty, tx) owns rows ty + 16·i and columns tx + 16·j,
///          A tile  │ 16 x 16    │      so that neighbouring threads store neighbouring columns
///         (64 x 16)│ threads    │
/// Needs    Nothing: edges are filled with 0, any strides and sizes. Block = 256 threads.
/// Roofline 2·m·n·k FLOP in fp32; 32 FLOP a byte of global memory at bfloat16 operands.
/// Expect   10 to 30 % of the fp32 peak, far below the tensor cores.
/// Measured see the contract run of tools/gpu_test (written by the run, never typed here)
/// Next     The tensor cores' mma instructions.

#include "cuda/base/launch.h"
#include "cuda/gemm/gemm.h"
#include "cuda/gemm/gemm_operand.cuh"

namespace kitchen::cuda {

namespace {

constexpr int kTile = 64;   // outputs of a block along m and n
constexpr int kDepth = 16;  // k of a tile
constexpr int kSide = 16;   // threads of a block along m and n
constexpr int kOutputs = kTile / kSide;
static_assert(kSide * kSide == kThreads);

/// Tile of rows [first, first + kTile) and columns [k0, k0 + kDepth), turned, 0 beyond the edges.
__device__ void load_tile(const GemmOperand& x, std::int64_t batch, std::int64_t first,
                          std::int64_t rows, std::int64_t k0, std::int64_t depth,
                          float (&tile)[kDepth][kTile + 1]) {
  // Neighbouring threads read neighbours in memory, along k or along the rows.
  const bool along_k = x.strides[2] == 1;
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kDepth; i += kThreads) {
    const int r = along_k ? i / kDepth : i % kTile;
    const int k = along_k ? i % kDepth : i / kTile;
    const bool is_there = first + r < rows && k0 + k < depth;
    tile[k][r] = is_there ? x.at(batch, first + r, k0 + k) : 0.0f;
  }
}

__global__ void __launch_bounds__(kThreads)
    gemm_tiled_kernel(GemmOperand a, GemmOperand b, GemmResult result, GemmSizes size,
                      std::int64_t tiles_n, std::int64_t tiles_m) {
  __shared__ float a_tile[kDepth][kTile + 1];
  __shared__ float b_tile[kDepth][kTile + 1];
  const std::int64_t index = blockIdx.x;
  const std::int64_t col = index % tiles_n * kTile;
  const std::int64_t row = index / tiles_n % tiles_m * kTile;
  const std::int64_t batch = index / tiles_n / tiles_m;
  const int tx = static_cast<int>(threadIdx.x) % kSide;
  const int ty = static_cast<int>(threadIdx.x) / kSide;
  float acc[kOutputs][kOutputs] = {};  // (4, 4) outputs of this thread
  for (std::int64_t k0 = 0; k0 < size.k; k0 += kDepth) {
    load_tile(a, batch, row, size.m, k0, size.k, a_tile);
    load_tile(b, batch, col, size.n, k0, size.k, b_tile);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      float left[kOutputs];   // (4) of a column of A
      float right[kOutputs];  // (4) of a column of B
#pragma unroll
      for (int i = 0; i < kOutputs; ++i) left[i] = a_tile[k][ty + kSide * i];
#pragma unroll
      for (int j = 0; j < kOutputs; ++j) right[j] = b_tile[k][tx + kSide * j];
#pragma unroll
      for (int i = 0; i < kOutputs; ++i) {
#pragma unroll
        for (int j = 0; j < kOutputs; ++j) acc[i][j] = fmaf(left[i], right[j], acc[i][j]);
      }
    }
    __syncthreads();  // all threads have read the tiles; the next loads overwrite them
  }
#pragma unroll
  for (int i = 0; i < kOutputs; ++i) {
#pragma unroll
    for (int j = 0; j < kOutputs; ++j) {
      const std::int64_t r = row + ty + kSide * i;
      const std::int64_t c = col + tx + kSide * j;
      if (r < size.m && c < size.n) result.put(batch, r, c, acc[i][j]);
    }
  }
}

}  // namespace

void gemm_tiled(const Stream& stream, ConstView a, ConstView b, View d,
                const ops::GemmEpilogue& epilogue, void* /*workspace*/) {
  if (d.numel() == 0) return;
  const std::int64_t tiles_n = ceil_div(d.shape[2], kTile);
  const std::int64_t tiles_m = ceil_div(d.shape[1], kTile);
  gemm_tiled_kernel<<<static_cast<unsigned>(tiles_n * tiles_m * d.shape[0]), kThreads, 0,
                      native(stream)>>>(gemm_operand(a), gemm_operand(b), gemm_result(d, epilogue),
                                        gemm_sizes(a, d), tiles_n, tiles_m);
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

}  // namespace kitchen::cuda
