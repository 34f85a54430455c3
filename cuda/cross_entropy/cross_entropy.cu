/// @file   cuda/cross_entropy/cross_entropy.cu
/// @brief  Sixteen lanes make the log-sum-exp of one row of logits; the gradient overwrites them in
/// place.
///
/// Idea     The contract sums a row in 16 interleaved partial sums: lane l owns the columns l, l +
/// 16, ... Picture  row: c0 .. c15 | c16 .. c31 | ...   lane l adds exp(c_l - max) + ...   then
/// xor-shuffle 8, 4, 2, 1 Needs    Unit column stride; dlogits may be logits. Roofline forward
/// reads the logits twice, backward reads and writes them once. Expect   >= 30 % of the measured
/// copy bandwidth for a vocabulary of 50257. Measured see the contract run of tools/gpu_test
/// (written by the run, never typed here) Next     Forward and backward in one pass over a chunk of
/// logits that is still in the cache.

#include "kitchen/ops/cross_entropy.h"

#include "cuda/base/element_io.cuh"
#include "cuda/base/lanes.cuh"
#include "cuda/base/launch.h"
#include "cuda/register_kernels.h"

namespace kitchen::cuda {

namespace {

constexpr int kLanes = 16;

__device__ float quiet_nan() {
  return float_from_bits(0x7FC00000u);
}

__global__ void cross_entropy_forward_kernel(ConstElements logits, std::int64_t stride,
                                             const std::int64_t* labels, std::int64_t tokens,
                                             std::int64_t vocab_size, float* losses, float* lse) {
  const std::int64_t index = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  // A lane without a row works on the first one without storing: the shuffles want all lanes.
  const bool is_active = index < tokens;
  const std::int64_t token = is_active ? index : 0;
  const std::int64_t at = token * stride;
  float largest = -INFINITY;
  for (std::int64_t c = lane; c < vocab_size; c += kLanes) {
    const float value = load_element(logits, at + c);
    largest = value > largest ? value : largest;
  }
  for (int step = kLanes / 2; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(0xFFFFFFFFu, largest, step);
    largest = other > largest ? other : largest;
  }
  float sum = 0.0f;
  for (std::int64_t c = lane; c < vocab_size; c += kLanes) {
    sum += exp_exact(load_element(logits, at + c) - largest);
  }
  sum = sum_lanes(sum, kLanes);
  if (!is_active || lane != 0) return;
  const float result = largest + log_exact(sum);
  const std::int64_t label = labels[token];
  lse[token] = result;
  losses[token] = label == ops::kIgnoredLabel        ? 0.0f
                  : label < 0 || label >= vocab_size ? quiet_nan()
                                                     : result - load_element(logits, at + label);
}

__global__ void cross_entropy_backward_kernel(const float* dlosses, ConstElements logits,
                                              std::int64_t stride, const std::int64_t* labels,
                                              const float* lse, std::int64_t vocab_size,
                                              Elements dlogits, std::int64_t dstride,
                                              std::int64_t cols, std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const std::int64_t token = i / cols;
    const std::int64_t col = i % cols;
    const std::int64_t label = labels[token];
    float gradient = 0.0f;
    if (label != ops::kIgnoredLabel && col < vocab_size) {
      gradient = exp_exact(load_element(logits, token * stride + col) - lse[token]);
      if (col == label) gradient -= 1.0f;
      gradient *= label >= 0 && label < vocab_size ? dlosses[token] : quiet_nan();
    }
    store_element(dlogits, token * dstride + col, gradient);
  }
}

void cross_entropy_forward(const Stream& stream, ConstView logits, ConstView labels,
                           std::int64_t vocab_size, View losses, View lse) {
  const std::int64_t tokens = logits.shape[0];
  if (tokens == 0) return;
  cross_entropy_forward_kernel<<<static_cast<unsigned>(ceil_div(tokens * kLanes, kThreads)),
                                 kThreads, 0, native(stream)>>>(
      elements_of(logits), logits.strides[0], static_cast<const std::int64_t*>(labels.data), tokens,
      vocab_size, static_cast<float*>(losses.data), static_cast<float*>(lse.data));
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

void cross_entropy_backward(const Stream& stream, ConstView dlosses, ConstView logits,
                            ConstView labels, ConstView lse, std::int64_t vocab_size,
                            View dlogits) {
  const std::int64_t count = dlogits.numel();
  if (count == 0) return;
  cross_entropy_backward_kernel<<<blocks_for(count), kThreads, 0, native(stream)>>>(
      static_cast<const float*>(dlosses.data), elements_of(logits), logits.strides[0],
      static_cast<const std::int64_t*>(labels.data), static_cast<const float*>(lse.data),
      vocab_size, elements_of(dlogits), dlogits.strides[0], dlogits.shape[1], count);
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

}  // namespace

void register_cross_entropy_kernels(Backend& backend) {
  backend.add<ops::CrossEntropyForwardKernel>("exact", &cross_entropy_forward);
  backend.add<ops::CrossEntropyBackwardKernel>("exact", &cross_entropy_backward);
}

}  // namespace kitchen::cuda
