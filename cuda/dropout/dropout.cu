/// @file   cuda/dropout/dropout.cu
/// @brief  One thread drops or keeps 8 neighbouring elements: two blocks of random words.
///
/// Idea     The mask is a function of seed and index, so that nothing is stored and backward is the
/// same kernel. Picture  thread i: elements 8i .. 8i+7 <─ words of the Philox blocks 2i and 2i+1
/// Needs    Dense operands.
/// Roofline reads 2 B and writes 2 B an element (bfloat16); ten rounds of Philox for four elements.
/// Expect   >= 50 % of the measured copy bandwidth.
/// Measured see the contract run of tools/gpu_test (written by the run, never typed here)
/// Next     The norm that follows, in the same kernel.

#include "kitchen/ops/dropout.h"

#include "cuda/base/element_io.cuh"
#include "cuda/base/launch.h"
#include "cuda/register_kernels.h"

namespace kitchen::cuda {

namespace {

/// In place: the elements from `first` on, a multiple of kPack, dropped or divided by 1 - p.
__device__ void drop_pack(float (&values)[kPack], std::int64_t first, float p, const Rng& rng) {
  if (p == 0.0f) return;
  const float keep_probability = 1.0f - p;
  const auto high = static_cast<std::uint32_t>(rng.stream_id >> 32);
#pragma unroll
  for (int half = 0; half < kPack / 4; ++half) {
    const std::uint64_t block = static_cast<std::uint64_t>(first) / 4 + static_cast<unsigned>(half);
    const Words4 words =
        philox4x32({{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                     static_cast<std::uint32_t>(rng.stream_id), high}},
                   rng.seed);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float uniform = static_cast<float>(words.v[i] >> 8) * 0x1p-24f;
      float& value = values[4 * half + i];
      value = uniform >= p ? value / keep_probability : 0.0f;
    }
  }
}

__global__ void dropout_kernel(ConstElements x, float p, Rng rng, Elements out, std::int64_t count,
                               bool aligned) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x * kPack;
  std::int64_t i = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kPack;
  for (; i < count; i += step) {
    float values[kPack];
    load_up_to(x, i, count - i, aligned, values);
    drop_pack(values, i, p, rng);
    store_up_to(out, i, count - i, aligned, values);
  }
}

__global__ void bias_dropout_add_kernel(ConstElements x, ConstElements bias,
                                        std::int64_t bias_stride, ConstElements residual, float p,
                                        Rng rng, Elements out, std::int64_t cols,
                                        std::int64_t count, bool aligned) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x * kPack;
  std::int64_t i = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kPack;
  for (; i < count; i += step) {
    float values[kPack];
    float former[kPack];
    load_up_to(x, i, count - i, aligned, values);
    load_up_to(residual, i, count - i, aligned, former);
    for (int j = 0; j < kPack && bias.data != nullptr; ++j) {
      const float term = load_element(bias, (i + j) % cols * bias_stride);
      values[j] = round_to(x.dtype, values[j] + term);
    }
    drop_pack(values, i, p, rng);
    for (int j = 0; j < kPack; ++j) values[j] = former[j] + round_to(x.dtype, values[j]);
    store_up_to(out, i, count - i, aligned, values);
  }
}

void dropout(const Stream& stream, ConstView x, float p, const Rng& rng, View out) {
  const std::int64_t count = out.numel();
  if (count == 0) return;
  const bool aligned = is_aligned16(x.data) && is_aligned16(out.data);
  dropout_kernel<<<blocks_for(ceil_div(count, kPack)), kThreads, 0, native(stream)>>>(
      elements_of(x), p, rng, elements_of(out), count, aligned);
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

void bias_dropout_add(const Stream& stream, ConstView x, ConstView bias, ConstView residual,
                      float p, const Rng& rng, View out) {
  const std::int64_t count = out.numel();
  if (count == 0) return;
  const bool aligned =
      is_aligned16(x.data) && is_aligned16(residual.data) && is_aligned16(out.data);
  bias_dropout_add_kernel<<<blocks_for(ceil_div(count, kPack)), kThreads, 0, native(stream)>>>(
      elements_of(x), elements_of(bias), bias.strides[0], elements_of(residual), p, rng,
      elements_of(out), x.shape[1], count, aligned);
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

}  // namespace

void register_dropout_kernels(Backend& backend) {
  backend.add<ops::DropoutKernel>("exact", &dropout);
  backend.add<ops::BiasDropoutAddKernel>("exact", &bias_dropout_add);
}

}  // namespace kitchen::cuda
