/// @file   cuda/rotary/rotary.cu
/// @brief  One block rotates all heads of one position: its angles are made once.
///
/// Idea     The fp64 sine and cosine cost far more than the rotation, so that the block keeps them
///          in shared memory for all batch indices and heads.
/// Picture  position s ─> angles (r/2) in shared memory
///          thread: (a, b) at (i, i + r/2) ─> (a·cos - b·sin, b·cos + a·sin)
/// Needs    Unit stride in d. Block = 256 threads, r/2 pairs of fp32 in shared memory.
/// Roofline reads 2 B and writes 2 B an element (bfloat16), and s·r/2 sines in fp64.
/// Expect   >= 30 % of the measured copy bandwidth from 8 heads on.
/// Measured see the contract run of tools/gpu_test (written by the run, never typed here)
/// Next     Angles of all positions in a table that layers share.

#include "kitchen/ops/rotary.h"

#include "cuda/base/element_io.cuh"
#include "cuda/base/launch.h"
#include "cuda/register_kernels.h"

namespace kitchen::cuda {

namespace {

/// [s, b, n, d] with unit stride in d.
struct Rows {
  std::int64_t strides[3];

  __device__ std::int64_t at(std::int64_t s, std::int64_t b, std::int64_t n) const {
    return s * strides[0] + b * strides[1] + n * strides[2];
  }
};

__global__ void rotary_kernel(ConstElements x, Rows from, Elements out, Rows to, std::int64_t heads,
                              std::int64_t rows, std::int64_t head_dim, std::int64_t half,
                              double base, float sign) {
  extern __shared__ float angles[];  // (2, half): cosines, sines
  float* cosine = angles;
  float* sine = angles + half;
  const std::int64_t position = blockIdx.x;
  for (std::int64_t i = threadIdx.x; i < half; i += blockDim.x) {
    const double frequency =
        pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(2 * half));
    const double angle = static_cast<double>(position) * frequency;
    cosine[i] = static_cast<float>(cos(angle));
    sine[i] = sign * static_cast<float>(sin(angle));
  }
  __syncthreads();  // all angles are written
  const std::int64_t items = head_dim - half;  // pairs, then the elements that are copied
  for (std::int64_t item = threadIdx.x; item < rows * items; item += blockDim.x) {
    const std::int64_t row = item / items;
    const std::int64_t i = item % items;
    const std::int64_t source = from.at(position, row / heads, row % heads);
    const std::int64_t target = to.at(position, row / heads, row % heads);
    if (i >= half) {
      store_element(out, target + half + i, load_element(x, source + half + i));
      continue;
    }
    const float a = load_element(x, source + i);
    const float b = load_element(x, source + i + half);
    store_element(out, target + i, a * cosine[i] - b * sine[i]);
    store_element(out, target + i + half, b * cosine[i] + a * sine[i]);
  }
}

template <class View>
Rows rows_of(const View& view) {
  return {{view.strides[0], view.strides[1], view.strides[2]}};
}

void rotary(const Stream& stream, ConstView x, std::int64_t rotary_dim, double base, float sign,
            View out) {
  if (out.numel() == 0) return;
  const std::int64_t half = rotary_dim / 2;
  const auto shared_bytes = static_cast<std::size_t>(2 * half) * sizeof(float);
  rotary_kernel<<<static_cast<unsigned>(x.shape[0]), kThreads, shared_bytes, native(stream)>>>(
      elements_of(x), rows_of(x), elements_of(out), rows_of(out), x.shape[2],
      x.shape[1] * x.shape[2], x.shape[3], half, base, sign);
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

}  // namespace

void register_rotary_kernels(Backend& backend) {
  backend.add<ops::RotaryKernel>("exact", &rotary);
}

}  // namespace kitchen::cuda
