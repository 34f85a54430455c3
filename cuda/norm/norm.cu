/// @file   cuda/norm/norm.cu
/// @brief  Eight lanes normalise one row; gradients of the gain are sums down the columns in chunks
/// of 128 rows.
///
/// Idea     The contract sums a row in 8 interleaved partial sums: lane l owns the columns l, l +
/// 8, ... Column
///          sums need another walk, a thread a column and chunk, so that neighbours read
///          neighbours.
/// Picture  forward, dx:  row ─ lanes 0..7 ─ xor-shuffle 4, 2, 1 ─> mean, rstd ─> y
///          dgamma:       chunk 0 of rows ─> partial[0][c]   chunk 1 ─> partial[1][c]  ...  ─> sum
///          in this order
/// Needs    Unit column stride, any row stride.
/// Roofline forward reads 2 B and writes 2 B an element (bfloat16), three reads, two of them from
/// the caches. Expect   >= 30 % of the measured copy bandwidth for rows of 1024. Measured see the
/// contract run of tools/gpu_test (written by the run, never typed here) Next     A row in the
/// registers of a warp, and the quantization that follows in the same kernel.

#include "kitchen/ops/norm.h"

#include "cuda/base/element_io.cuh"
#include "cuda/base/lanes.cuh"
#include "cuda/base/launch.h"
#include "cuda/register_kernels.h"

namespace kitchen::cuda {

namespace {

constexpr int kLanes = 8;
constexpr std::int64_t kRowsPerChunk = 128;

struct Matrix {
  ConstElements x;
  std::int64_t row_stride;

  __device__ float at(std::int64_t row, std::int64_t col) const {
    return load_element(x, row * row_stride + col);
  }
};

Matrix matrix_of(const ConstView& x) {
  return {elements_of(x), x.strides[0]};
}

struct Gain {
  ConstElements gamma;
  bool zero_centered;

  __device__ float at(std::int64_t col) const {
    const float value = load_element(gamma, col);
    return zero_centered ? 1.0f + value : value;
  }
};

__global__ void norm_forward_kernel(Matrix x, Gain gain, ConstElements beta, Elements y,
                                    std::int64_t y_stride, float* means, float* rstds,
                                    std::int64_t rows, std::int64_t cols, bool is_layer_norm,
                                    float eps) {
  const std::int64_t index = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  // A lane without a row works on the first one without storing: the shuffles want all lanes.
  const bool is_active = index < rows;
  const std::int64_t row = is_active ? index : 0;
  const auto count = static_cast<float>(cols);
  float mean = 0.0f;
  if (is_layer_norm) {
    for (std::int64_t c = lane; c < cols; c += kLanes) mean += x.at(row, c);
    mean = sum_lanes(mean, kLanes) / count;
  }
  float squares = 0.0f;
  for (std::int64_t c = lane; c < cols; c += kLanes) {
    const float centred = x.at(row, c) - mean;
    squares += centred * centred;
  }
  const float rstd = 1.0f / sqrtf(sum_lanes(squares, kLanes) / count + eps);
  if (!is_active) return;
  if (lane == 0) {
    if (means != nullptr) means[row] = mean;
    rstds[row] = rstd;
  }
  for (std::int64_t c = lane; c < cols; c += kLanes) {
    float value = (x.at(row, c) - mean) * rstd * gain.at(c);
    if (beta.data != nullptr) value = value + load_element(beta, c);
    store_element(y, row * y_stride + c, value);
  }
}

__global__ void norm_dx_kernel(Matrix dy, Matrix x, Gain gain, const float* means,
                               const float* rstds, Elements dx, std::int64_t dx_stride,
                               std::int64_t rows, std::int64_t cols, bool is_layer_norm) {
  const std::int64_t index = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const bool is_active = index < rows;
  const std::int64_t row = is_active ? index : 0;
  const float mean = is_layer_norm ? means[row] : 0.0f;
  const float rstd = rstds[row];
  const auto count = static_cast<float>(cols);
  float slope = 0.0f;
  float offset = 0.0f;
  for (std::int64_t c = lane; c < cols; c += kLanes) {
    const float weighted = dy.at(row, c) * gain.at(c);
    slope += weighted * ((x.at(row, c) - mean) * rstd);
    offset += weighted;
  }
  slope = sum_lanes(slope, kLanes) / count;
  offset = sum_lanes(offset, kLanes) / count;
  if (!is_layer_norm) offset = 0.0f;
  if (!is_active) return;
  for (std::int64_t c = lane; c < cols; c += kLanes) {
    const float xhat = (x.at(row, c) - mean) * rstd;
    const float weighted = dy.at(row, c) * gain.at(c);
    store_element(dx, row * dx_stride + c, (weighted - (xhat * slope + offset)) * rstd);
  }
}

__global__ void norm_chunk_kernel(Matrix dy, Matrix x, const float* means, const float* rstds,
                                  float* gamma_sums, float* beta_sums, std::int64_t rows,
                                  std::int64_t cols, bool is_layer_norm) {
  const std::int64_t col = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t chunk = blockIdx.y;
  if (col >= cols) return;
  float gamma_sum = 0.0f;
  float beta_sum = 0.0f;
  const std::int64_t end = min(rows, (chunk + 1) * kRowsPerChunk);
  for (std::int64_t row = chunk * kRowsPerChunk; row < end; ++row) {
    const float mean = is_layer_norm ? means[row] : 0.0f;
    const float gradient = dy.at(row, col);
    gamma_sum += gradient * ((x.at(row, col) - mean) * rstds[row]);
    beta_sum += gradient;
  }
  gamma_sums[chunk * cols + col] = gamma_sum;
  beta_sums[chunk * cols + col] = beta_sum;
}

__global__ void add_chunks_kernel(const float* sums, std::int64_t chunks, std::int64_t cols,
                                  float* out) {
  const std::int64_t col = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (col >= cols) return;
  float total = 0.0f;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) total += sums[chunk * cols + col];
  out[col] = total;
}

unsigned row_blocks(std::int64_t rows) {
  return static_cast<unsigned>(ceil_div(rows * kLanes, kThreads));
}

void norm_forward(const Stream& stream, ConstView x, ConstView gamma, ConstView beta, View y,
                  View mean, View rstd, const ops::NormOptions& options) {
  if (x.shape[0] == 0) return;
  norm_forward_kernel<<<row_blocks(x.shape[0]), kThreads, 0, native(stream)>>>(
      matrix_of(x), Gain{elements_of(gamma), options.zero_centered_gamma}, elements_of(beta),
      elements_of(y), y.strides[0], static_cast<float*>(mean.data), static_cast<float*>(rstd.data),
      x.shape[0], x.shape[1], options.kind == ops::NormKind::layer_norm, options.eps);
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

void norm_backward(const Stream& stream, ConstView dy, ConstView x, ConstView gamma, ConstView mean,
                   ConstView rstd, View dx, View dgamma, View dbeta, void* workspace,
                   const ops::NormOptions& options) {
  const std::int64_t rows = x.shape[0];
  const std::int64_t cols = x.shape[1];
  const std::int64_t chunks = ceil_div(rows, kRowsPerChunk);
  const bool is_layer_norm = options.kind == ops::NormKind::layer_norm;
  const auto* means = static_cast<const float*>(mean.data);
  const auto* rstds = static_cast<const float*>(rstd.data);
  auto* gamma_sums = static_cast<float*>(workspace);  // (chunks, cols)
  float* beta_sums = gamma_sums + chunks * cols;      // (chunks, cols)
  const auto col_blocks = static_cast<unsigned>(ceil_div(cols, kThreads));
  if (rows > 0) {
    norm_chunk_kernel<<<dim3(col_blocks, static_cast<unsigned>(chunks)), kThreads, 0,
                        native(stream)>>>(matrix_of(dy), matrix_of(x), means, rstds, gamma_sums,
                                          beta_sums, rows, cols, is_layer_norm);
    KITCHEN_CUDA_CHECK(cudaGetLastError());
    norm_dx_kernel<<<row_blocks(rows), kThreads, 0, native(stream)>>>(
        matrix_of(dy), matrix_of(x), Gain{elements_of(gamma), options.zero_centered_gamma}, means,
        rstds, elements_of(dx), dx.strides[0], rows, cols, is_layer_norm);
    KITCHEN_CUDA_CHECK(cudaGetLastError());
  }
  add_chunks_kernel<<<col_blocks, kThreads, 0, native(stream)>>>(gamma_sums, chunks, cols,
                                                                 static_cast<float*>(dgamma.data));
  KITCHEN_CUDA_CHECK(cudaGetLastError());
  if (!dbeta.defined()) return;
  add_chunks_kernel<<<col_blocks, kThreads, 0, native(stream)>>>(beta_sums, chunks, cols,
                                                                 static_cast<float*>(dbeta.data));
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

}  // namespace

void register_norm_kernels(Backend& backend) {
  backend.add<ops::NormForwardKernel>("exact", &norm_forward);
  backend.add<ops::NormBackwardKernel>("exact", &norm_backward);
}

}  // namespace kitchen::cuda
