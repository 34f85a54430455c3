/// @file   cuda/elementwise/elementwise.cu
/// @brief  One thread computes 8 neighbouring elements of a dense operand; strided operands go one
/// by one.
///
/// Idea     Eight elements of bfloat16 are 16 bytes, the widest access of a thread. The dtype is a
/// value,
///          not a template parameter: its branch is uniform, and one kernel serves all nine
///          conversions.
/// Picture  thread 0: x[0..7]   thread 1: x[8..15]   ...   the last thread: the rest, one by one
/// Needs    Dense views that start at a multiple of 16 bytes take the wide path; all others are
/// right too. Roofline reads each input and writes the output once. Memory-bound: time >= bytes /
/// bandwidth. Expect   >= 80 % of the measured copy bandwidth from 2^24 elements on, for dense
/// views. Measured see the contract run of tools/gpu_test (written by the run, never typed here)
/// Next     cuda/quantize/quantize_blocks.cu: the output has fewer bytes, and a scale a block.

#include "kitchen/ops/elementwise.h"

#include "cuda/base/element_io.cuh"
#include "cuda/base/launch.h"
#include "cuda/base/strided.cuh"
#include "cuda/register_kernels.h"

namespace kitchen::cuda {

namespace {

struct Identity {
  __device__ float operator()(float x) const { return x; }
};

struct Times {
  float factor;
  __device__ float operator()(float x) const { return factor * x; }
};

struct Constant {
  float value;
  __device__ float operator()(float) const { return value; }
};

// Two roundings and one sum, as the contract says: this file is built without contraction.
struct WeightedSum {
  float alpha, beta;
  __device__ float operator()(float a, float b) const { return alpha * a + beta * b; }
};

struct Product {
  __device__ float operator()(float a, float b) const { return a * b; }
};

template <class Op>
__global__ void map_kernel(Op op, ConstElements x, Elements out, std::int64_t count, bool aligned) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x * kPack;
  std::int64_t i = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kPack;
  for (; i < count; i += step) {
    float values[kPack];
    load_up_to(x, i, count - i, aligned, values);
    for (float& value : values) value = op(value);
    store_up_to(out, i, count - i, aligned, values);
  }
}

template <class Op>
__global__ void map_strided_kernel(Op op, ConstElements x, Elements out, StridedPair pair,
                                   std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const Offsets at = offsets_at(pair, i);
    store_element(out, at.b, op(load_element(x, at.a)));
  }
}

template <class Op>
__global__ void combine_kernel(Op op, ConstElements a, ConstElements b, Elements out,
                               std::int64_t count, bool aligned) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x * kPack;
  std::int64_t i = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kPack;
  for (; i < count; i += step) {
    float left[kPack];
    float right[kPack];
    load_up_to(a, i, count - i, aligned, left);
    load_up_to(b, i, count - i, aligned, right);
    for (int j = 0; j < kPack; ++j) left[j] = op(left[j], right[j]);
    store_up_to(out, i, count - i, aligned, left);
  }
}

__global__ void add_bias_kernel(ConstElements x, ConstElements bias, std::int64_t bias_stride,
                                Elements out, std::int64_t count, std::int64_t cols) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    store_element(out, i, load_element(x, i) + load_element(bias, i % cols * bias_stride));
  }
}

template <class Op>
void map(const Stream& stream, Op op, const ConstView& x, const View& out) {
  const std::int64_t count = out.numel();
  if (count == 0) return;
  const StridedPair pair = strided_pair(x, out);
  if (pair.is_dense()) {
    const bool aligned = is_aligned16(x.data) && is_aligned16(out.data);
    map_kernel<<<blocks_for(ceil_div(count, kPack)), kThreads, 0, native(stream)>>>(
        op, elements_of(x), elements_of(out), count, aligned);
  } else {
    map_strided_kernel<<<blocks_for(count), kThreads, 0, native(stream)>>>(
        op, elements_of(x), elements_of(out), pair, count);
  }
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

template <class Op>
void combine(const Stream& stream, Op op, const ConstView& a, const ConstView& b, const View& out) {
  const std::int64_t count = out.numel();
  if (count == 0) return;
  const bool aligned = is_aligned16(a.data) && is_aligned16(b.data) && is_aligned16(out.data);
  combine_kernel<<<blocks_for(ceil_div(count, kPack)), kThreads, 0, native(stream)>>>(
      op, elements_of(a), elements_of(b), elements_of(out), count, aligned);
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

void cast(const Stream& stream, ConstView source, View target) {
  map(stream, Identity{}, source, target);
}

void scale(const Stream& stream, float factor, ConstView x, View out) {
  map(stream, Times{factor}, x, out);
}

void fill(const Stream& stream, float value, View out) {
  map(stream, Constant{value}, out, out);
}

void axpby(const Stream& stream, float alpha, ConstView a, float beta, ConstView b, View out) {
  combine(stream, WeightedSum{alpha, beta}, a, b, out);
}

void multiply(const Stream& stream, ConstView a, ConstView b, View out) {
  combine(stream, Product{}, a, b, out);
}

void add_bias(const Stream& stream, ConstView x, ConstView bias, View out) {
  const std::int64_t count = out.numel();
  if (count == 0) return;
  add_bias_kernel<<<blocks_for(count), kThreads, 0, native(stream)>>>(
      elements_of(x), elements_of(bias), bias.strides[0], elements_of(out), count, out.shape[1]);
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

}  // namespace

void register_elementwise_kernels(Backend& backend) {
  backend.add<ops::CastKernel>("exact", &cast);
  backend.add<ops::AxpbyKernel>("exact", &axpby);
  backend.add<ops::ScaleKernel>("exact", &scale);
  backend.add<ops::MultiplyKernel>("exact", &multiply);
  backend.add<ops::FillKernel>("exact", &fill);
  backend.add<ops::AddBiasKernel>("exact", &add_bias);
}

}  // namespace kitchen::cuda
