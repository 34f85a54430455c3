/// @file   cuda/activation/activation.cu
/// @brief  One thread computes one output element: bias, activation and gate in one pass.
///
/// Idea     The scalar functions are those of the CPU, from one header; a kernel only fetches and
/// stores. Picture  gated row of x: [gate 0 .. f-1 | linear 0 .. f-1]; thread c reads columns c and
/// f + c Needs    Unit column stride. Roofline gated forward reads 4 B and writes 2 B an output
/// element (bfloat16). Memory-bound, with about
///          30 arithmetic instructions an element close to the other limit.
/// Expect   >= 40 % of the measured copy bandwidth.
/// Measured see the contract run of tools/gpu_test (written by the run, never typed here)
/// Next     Eight elements a thread, and the quantization that follows in the same kernel.

#include "kitchen/ops/activation.h"
#include "kitchen/ops/activation_functions.h"

#include "cuda/base/element_io.cuh"
#include "cuda/base/launch.h"
#include "cuda/register_kernels.h"

namespace kitchen::cuda {

namespace {

struct Hidden {
  ConstElements x;
  std::int64_t row_stride;
  ConstElements bias;  ///< data is null without one

  /// x + bias rounded to x's dtype, as a separate addition would.
  __device__ float at(std::int64_t row, std::int64_t col) const {
    const float value = load_element(x, row * row_stride + col);
    return bias.data == nullptr ? value : round_to(x.dtype, value + load_element(bias, col));
  }
};

Hidden hidden_of(const ConstView& x, const ConstView& bias) {
  return {elements_of(x), x.strides[0], elements_of(bias)};
}

template <class Function>
__global__ void activation_forward_kernel(Function, Hidden h, Elements y, std::int64_t y_stride,
                                          std::int64_t cols, std::int64_t count, bool gated,
                                          float offset) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const std::int64_t row = i / cols;
    const std::int64_t col = i % cols;
    float value = Function::value(h.at(row, col));
    if (gated) value *= h.at(row, cols + col) + offset;
    store_element(y, row * y_stride + col, value);
  }
}

template <class Function>
__global__ void activation_backward_kernel(Function, ConstElements dy, std::int64_t dy_stride,
                                           Hidden h, Elements dx, std::int64_t dx_stride,
                                           std::int64_t cols, std::int64_t count, bool gated,
                                           float offset) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const std::int64_t row = i / cols;
    const std::int64_t col = i % cols;
    const float gradient = load_element(dy, row * dy_stride + col);
    const float gate = h.at(row, col);
    const std::int64_t to = row * dx_stride + col;
    if (!gated) {
      store_element(dx, to, gradient * Function::slope(gate));
      continue;
    }
    store_element(dx, to + cols, gradient * Function::value(gate));
    store_element(dx, to, gradient * (h.at(row, cols + col) + offset) * Function::slope(gate));
  }
}

template <class Body>
void with_function(ops::Activation activation, Body&& body) {
  switch (activation) {
    case ops::Activation::gelu:
      return body(ops::Gelu{});
    case ops::Activation::gelu_tanh:
      return body(ops::GeluTanh{});
    case ops::Activation::silu:
      return body(ops::Silu{});
    case ops::Activation::relu:
      return body(ops::Relu{});
  }
}

void activation_forward(const Stream& stream, ConstView x, ConstView bias, View y,
                        const ops::ActivationOptions& options) {
  const std::int64_t count = y.numel();
  if (count == 0) return;
  with_function(options.activation, [&](auto function) {
    activation_forward_kernel<<<blocks_for(count), kThreads, 0, native(stream)>>>(
        function, hidden_of(x, bias), elements_of(y), y.strides[0], y.shape[1], count,
        options.gated, options.linear_offset);
  });
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

void activation_backward(const Stream& stream, ConstView dy, ConstView x, ConstView bias, View dx,
                         const ops::ActivationOptions& options) {
  const std::int64_t count = dy.numel();
  if (count == 0) return;
  with_function(options.activation, [&](auto function) {
    activation_backward_kernel<<<blocks_for(count), kThreads, 0, native(stream)>>>(
        function, elements_of(dy), dy.strides[0], hidden_of(x, bias), elements_of(dx),
        dx.strides[0], dy.shape[1], count, options.gated, options.linear_offset);
  });
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

}  // namespace

void register_activation_kernels(Backend& backend) {
  backend.add<ops::ActivationForwardKernel>("exact", &activation_forward);
  backend.add<ops::ActivationBackwardKernel>("exact", &activation_backward);
}

}  // namespace kitchen::cuda
