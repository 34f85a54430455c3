/// @file   cuda/reduction/sums.cu
/// @brief  Sums in the order that the contracts write down: chunks side by side, then the chunks in
/// order.
///
/// Idea     Floating-point sums depend on their order, so it is fixed: partial sums of a chunk,
/// each with a thread
///          or 8 lanes, then one walk over the partial sums. No atomics, no dependence on the grid.
/// Picture  all:   4096 elements ─ 8 lanes, fp64 ─> partial[0]   next 4096 ─> partial[1] ... ─>
/// ascending sum
///          rows:  128 rows ─ a thread a column, fp32 ─> partial[0][c] ... ─> ascending sum
/// Needs    Dense operands for whole sums, unit column stride for column sums.
/// Roofline reads the operand once. Memory-bound; the last walk is serial, 1 of 4096 elements.
/// Expect   >= 30 % of the measured read bandwidth from 2^24 elements on.
/// Measured see the contract run of tools/gpu_test (written by the run, never typed here)
/// Next     One launch for all tensors of a model.

#include "kitchen/ops/elementwise.h"
#include "kitchen/ops/optimizer.h"

#include "cuda/base/element_io.cuh"
#include "cuda/base/lanes.cuh"
#include "cuda/base/stream_scratch.h"
#include "cuda/register_kernels.h"

#include <vector>

namespace kitchen::cuda {

namespace {

constexpr int kLanes = 8;
constexpr std::int64_t kSumChunk = 4096;
constexpr std::int64_t kRowChunk = 128;

__global__ void chunk_sums_kernel(ConstElements x, std::int64_t count, bool squares,
                                  double* partial, std::int64_t chunks) {
  const std::int64_t index = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  // A lane without a chunk adds nothing: the shuffles want all lanes.
  const std::int64_t end = index < chunks ? min(count, (index + 1) * kSumChunk) : 0;
  double sum = 0.0;
  for (std::int64_t i = index * kSumChunk + lane; i < end; i += kLanes) {
    const auto value = static_cast<double>(load_element(x, i));
    sum += squares ? value * value : value;
  }
  sum = sum_lanes(sum, kLanes);
  if (index < chunks && lane == 0) partial[index] = sum;
}

__global__ void add_in_order_kernel(const double* partial, std::int64_t count, float* out) {
  __shared__ double staged[kThreads];
  double sum = 0.0;
  for (std::int64_t first = 0; first < count; first += kThreads) {
    const std::int64_t here = min(std::int64_t{kThreads}, count - first);
    if (threadIdx.x < here) staged[threadIdx.x] = partial[first + threadIdx.x];
    __syncthreads();
    for (int i = 0; threadIdx.x == 0 && i < here; ++i) sum += staged[i];
    __syncthreads();  // thread 0 has read all; the next round overwrites
  }
  if (threadIdx.x == 0) *out = static_cast<float>(sum);
}

__global__ void row_chunk_kernel(ConstElements x, std::int64_t row_stride, std::int64_t rows,
                                 std::int64_t cols, float* partial) {
  const std::int64_t col = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (col >= cols) return;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * kRowChunk;
  float sum = 0.0f;
  for (std::int64_t row = first; row < min(rows, first + kRowChunk); ++row) {
    sum += load_element(x, row * row_stride + col);
  }
  partial[blockIdx.y * cols + col] = sum;
}

__global__ void add_rows_kernel(const float* partial, std::int64_t chunks, std::int64_t cols,
                                float* out, bool accumulate) {
  const std::int64_t col = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (col >= cols) return;
  float total = 0.0f;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) total += partial[chunk * cols + col];
  out[col] = accumulate ? out[col] + total : total;
}

__global__ void clip_scale_kernel(const float* sum_squares, float max_norm, float* norm,
                                  float* clip) {
  const float length = sqrtf(*sum_squares);
  *norm = length;
  if (!(fabsf(length) <= 3.4028234663852886e38f)) {
    *clip = float_from_bits(0x7FC00000u);
  } else if (max_norm > 0.0f) {
    const float factor = max_norm / (length + 1e-6f);
    *clip = factor < 1.0f ? factor : 1.0f;
  } else {
    *clip = 1.0f;
  }
}

void sum_terms(const Stream& stream, const std::vector<ConstView>& tensors, bool squares,
               const View& out) {
  std::int64_t chunks = 0;
  for (const ConstView& tensor : tensors) chunks += ceil_div(tensor.numel(), kSumChunk);
  const StreamScratch scratch(stream, chunks * static_cast<std::int64_t>(sizeof(double)));
  auto* partial = scratch.as<double>();
  for (const ConstView& tensor : tensors) {
    const std::int64_t here = ceil_div(tensor.numel(), kSumChunk);
    if (here == 0) continue;
    chunk_sums_kernel<<<static_cast<unsigned>(ceil_div(here * kLanes, kThreads)), kThreads, 0,
                        native(stream)>>>(elements_of(tensor), tensor.numel(), squares, partial,
                                          here);
    KITCHEN_CUDA_CHECK(cudaGetLastError());
    partial += here;
  }
  add_in_order_kernel<<<1, kThreads, 0, native(stream)>>>(scratch.as<double>(), chunks,
                                                          static_cast<float*>(out.data));
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

void sum_all(const Stream& stream, ConstView x, View out) {
  sum_terms(stream, {x}, false, out);
}

void sum_squares(const Stream& stream, const std::vector<ConstView>& tensors, View out) {
  sum_terms(stream, tensors, true, out);
}

void sum_rows(const Stream& stream, ConstView x, View out, bool accumulate) {
  const std::int64_t cols = x.shape[1];
  const std::int64_t chunks = ceil_div(x.shape[0], kRowChunk);
  if (cols == 0) return;
  const StreamScratch scratch(stream, chunks * cols * static_cast<std::int64_t>(sizeof(float)));
  const auto col_blocks = static_cast<unsigned>(ceil_div(cols, kThreads));
  if (chunks > 0) {
    row_chunk_kernel<<<dim3(col_blocks, static_cast<unsigned>(chunks)), kThreads, 0,
                       native(stream)>>>(elements_of(x), x.strides[0], x.shape[0], cols,
                                         scratch.as<float>());
    KITCHEN_CUDA_CHECK(cudaGetLastError());
  }
  add_rows_kernel<<<col_blocks, kThreads, 0, native(stream)>>>(
      scratch.as<float>(), chunks, cols, static_cast<float*>(out.data), accumulate);
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

void clip_scale(const Stream& stream, ConstView sum_squares_view, float max_norm, View norm,
                View clip) {
  clip_scale_kernel<<<1, 1, 0, native(stream)>>>(static_cast<const float*>(sum_squares_view.data),
                                                 max_norm, static_cast<float*>(norm.data),
                                                 static_cast<float*>(clip.data));
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

}  // namespace

void register_sum_kernels(Backend& backend) {
  backend.add<ops::SumRowsKernel>("exact", &sum_rows);
  backend.add<ops::SumAllKernel>("exact", &sum_all);
  backend.add<ops::SumSquaresKernel>("exact", &sum_squares);
  backend.add<ops::ClipScaleKernel>("exact", &clip_scale);
}

}  // namespace kitchen::cuda
