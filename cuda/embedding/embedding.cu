/// @file   cuda/embedding/embedding.cu
/// @brief  Rows of a table by id; the gradient adds tokens in ascending order without atomics.
///
/// Idea     A thread owns one column of a share of the table's rows and walks all tokens in order,
/// adding those
///          whose id is in its share: no two threads write one element, so the order is the
///          contract's.
/// Picture  tokens t0 t1 t2 ... ─> share 0 (rows 0, S, 2S ...) adds t0, t2   share 1 adds t1 ...
/// Needs    Unit column stride of the table and of its gradient.
/// Roofline backward reads dy once and all ids once a share, from the caches.
/// Expect   Backward well above the time of dy's bytes: latency of the walk over the ids.
/// Measured see the contract run of tools/gpu_test (written by the run, never typed here)
/// Next     Tokens sorted by id first.

#include "kitchen/ops/embedding.h"

#include "cuda/base/element_io.cuh"
#include "cuda/base/launch.h"
#include "cuda/register_kernels.h"

namespace kitchen::cuda {

namespace {

constexpr int kShares = 64;  ///< parts of the table that walk the tokens side by side

__global__ void embedding_forward_kernel(const std::int64_t* ids, ConstElements table,
                                         std::int64_t rows, std::int64_t row_stride,
                                         std::int64_t first_id, Elements out, std::int64_t cols,
                                         std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const std::int64_t row = ids[i / cols] - first_id;
    const bool is_there = row >= 0 && row < rows;
    store_element(out, i, is_there ? load_element(table, row * row_stride + i % cols) : 0.0f);
  }
}

__global__ void embedding_backward_kernel(ConstElements dy, const std::int64_t* ids,
                                          std::int64_t tokens, std::int64_t cols,
                                          std::int64_t first_id, float* gradients,
                                          std::int64_t rows, std::int64_t row_stride) {
  const std::int64_t col = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (col >= cols) return;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::int64_t row = ids[t] - first_id;
    if (row < 0 || row >= rows || row % kShares != blockIdx.y) continue;
    gradients[row * row_stride + col] += load_element(dy, t * cols + col);
  }
}

void embedding_forward(const Stream& stream, ConstView ids, ConstView table, std::int64_t first_id,
                       View out) {
  const std::int64_t count = out.numel();
  if (count == 0) return;
  embedding_forward_kernel<<<blocks_for(count), kThreads, 0, native(stream)>>>(
      static_cast<const std::int64_t*>(ids.data), elements_of(table), table.shape[0],
      table.strides[0], first_id, elements_of(out), out.shape[1], count);
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

void embedding_backward(const Stream& stream, ConstView dy, ConstView ids, std::int64_t first_id,
                        View dtable) {
  if (dy.numel() == 0) return;
  constexpr int kColumnThreads = 64;
  const auto col_blocks = static_cast<unsigned>(ceil_div(dy.shape[1], kColumnThreads));
  embedding_backward_kernel<<<dim3(col_blocks, kShares), kColumnThreads, 0, native(stream)>>>(
      elements_of(dy), static_cast<const std::int64_t*>(ids.data), dy.shape[0], dy.shape[1],
      first_id, static_cast<float*>(dtable.data), dtable.shape[0], dtable.strides[0]);
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

}  // namespace

void register_embedding_kernels(Backend& backend) {
  backend.add<ops::EmbeddingForwardKernel>("exact", &embedding_forward);
  backend.add<ops::EmbeddingBackwardKernel>("exact", &embedding_backward);
}

}  // namespace kitchen::cuda
