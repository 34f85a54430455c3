/// @file   cuda/optimizer/adamw.cu
/// @brief  One thread updates one weight: moments, main weight and model weight in one pass.
///
/// Idea     Every operand is read and written once; the factor of the gradients is read on the
/// device, so that a
///          step that must be skipped needs no word from the host.
/// Picture  grad, m, v, main ─> m', v', main' ─ one rounding ─> model
/// Needs    Dense operands of the same number of elements.
/// Roofline reads 2 + 12 B and writes 12 + 2 B a weight (bfloat16 gradient and model).
/// Memory-bound. Expect   >= 60 % of the measured copy bandwidth. Measured see the contract run of
/// tools/gpu_test (written by the run, never typed here) Next     One launch for all parameters.

#include "kitchen/ops/optimizer.h"

#include "cuda/base/element_io.cuh"
#include "cuda/base/launch.h"
#include "cuda/register_kernels.h"

#include <cmath>

namespace kitchen::cuda {

namespace {

struct AdamWFactors {
  float beta1, beta2, one_minus_beta1, one_minus_beta2;
  float correction1, correction2;  ///< 1 / (1 - beta^step)
  float lr, eps, weight_decay;
};

AdamWFactors factors_of(const ops::AdamWOptions& options) {
  const auto correction = [&](float beta) {
    const double power = std::pow(static_cast<double>(beta), static_cast<double>(options.step));
    return static_cast<float>(1.0 / (1.0 - power));
  };
  return {options.beta1,
          options.beta2,
          1.0f - options.beta1,
          1.0f - options.beta2,
          correction(options.beta1),
          correction(options.beta2),
          options.lr,
          options.eps,
          options.weight_decay};
}

__global__ void adamw_kernel(const __grid_constant__ AdamWFactors f, const float* grad_scale,
                             ConstElements grad, float* main, float* exp_avg, float* exp_avg_sq,
                             Elements model, std::int64_t count) {
  const float factor = *grad_scale;
  if (!(fabsf(factor) <= 3.4028234663852886e38f)) return;
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const float g = load_element(grad, i) * factor;
    const float m = f.beta1 * exp_avg[i] + f.one_minus_beta1 * g;
    const float v = f.beta2 * exp_avg_sq[i] + f.one_minus_beta2 * (g * g);
    exp_avg[i] = m;
    exp_avg_sq[i] = v;
    const float change = m * f.correction1 / (sqrtf(v * f.correction2) + f.eps);
    const float weight = main[i] - f.lr * (change + f.weight_decay * main[i]);
    main[i] = weight;
    if (model.data != main) store_element(model, i, weight);
  }
}

void adamw(const Stream& stream, View main, View exp_avg, View exp_avg_sq, ConstView grad,
           ConstView grad_scale, View model, const ops::AdamWOptions& options) {
  const std::int64_t count = main.numel();
  if (count == 0) return;
  adamw_kernel<<<blocks_for(count), kThreads, 0, native(stream)>>>(
      factors_of(options), static_cast<const float*>(grad_scale.data), elements_of(grad),
      static_cast<float*>(main.data), static_cast<float*>(exp_avg.data),
      static_cast<float*>(exp_avg_sq.data), elements_of(model), count);
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

}  // namespace

void register_optimizer_kernels(Backend& backend) {
  backend.add<ops::AdamWKernel>("exact", &adamw);
}

}  // namespace kitchen::cuda
