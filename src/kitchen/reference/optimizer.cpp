#include "kitchen/reference/optimizer.h"

#include "kitchen/ops/optimizer.h"
#include "kitchen/reference/parallel.h"
#include "kitchen/reference/reduction.h"
#include "kitchen/reference/row_io.h"

#include <cmath>
#include <limits>

namespace kitchen::reference {

namespace {

constexpr std::int64_t kBlock = 1024;

/// The factors of one step; corrections are computed in fp64 and rounded once.
struct AdamWFactors {
  float grad_scale, beta1, beta2, one_minus_beta1, one_minus_beta2;
  float correction1, correction2;  ///< 1 / (1 - beta^step)
  float lr, eps, weight_decay;
};

AdamWFactors factors_of(const ops::AdamWOptions& options, float grad_scale) {
  const auto correction = [&](float beta) {
    const double power = std::pow(static_cast<double>(beta), static_cast<double>(options.step));
    return static_cast<float>(1.0 / (1.0 - power));
  };
  return {grad_scale,
          options.beta1,
          options.beta2,
          1.0f - options.beta1,
          1.0f - options.beta2,
          correction(options.beta1),
          correction(options.beta2),
          options.lr,
          options.eps,
          options.weight_decay};
}

void update(const AdamWFactors& f, std::int64_t count, const float* __restrict grad,
            float* __restrict main, float* __restrict exp_avg, float* __restrict exp_avg_sq) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float g = grad[i] * f.grad_scale;
    const float m = f.beta1 * exp_avg[i] + f.one_minus_beta1 * g;
    const float v = f.beta2 * exp_avg_sq[i] + f.one_minus_beta2 * (g * g);
    exp_avg[i] = m;
    exp_avg_sq[i] = v;
    const float step = m * f.correction1 / (std::sqrt(v * f.correction2) + f.eps);
    main[i] = main[i] - f.lr * (step + f.weight_decay * main[i]);
  }
}

void adamw(const Stream& /*stream*/, View main, View exp_avg, View exp_avg_sq, ConstView grad,
           ConstView grad_scale, View model, const ops::AdamWOptions& options) {
  const float scale = *static_cast<const float*>(grad_scale.data);
  if (!std::isfinite(scale)) return;
  const AdamWFactors factors = factors_of(options, scale);
  auto* weights = static_cast<float*>(main.data);
  auto* m = static_cast<float*>(exp_avg.data);
  auto* v = static_cast<float*>(exp_avg_sq.data);
  const bool copies_model = model.data != main.data;
  parallel_pieces(main.numel(), kParallelGrain, [&](std::int64_t begin, std::int64_t end) {
    float buffer[kBlock];
    for (std::int64_t i = begin; i < end; i += kBlock) {
      const std::int64_t count = std::min(kBlock, end - i);
      const float* g = static_cast<const float*>(grad.data) + i;
      if (grad.dtype != DType::float32) {
        load_row(grad.data, grad.dtype, i, 1, count, buffer);
        g = buffer;
      }
      update(factors, count, g, weights + i, m + i, v + i);
      if (copies_model) store_row(weights + i, model.data, model.dtype, i, 1, count);
    }
  });
}

void sum_squares(const Stream& /*stream*/, const std::vector<ConstView>& tensors, View out) {
  double sum = 0.0;
  for (const ConstView& tensor : tensors) sum = sum_chunks(tensor, &sum_of_squares, sum);
  *static_cast<float*>(out.data) = static_cast<float>(sum);
}

void clip_scale(const Stream& /*stream*/, ConstView sum_squares_view, float max_norm, View norm,
                View clip) {
  const float length = std::sqrt(*static_cast<const float*>(sum_squares_view.data));
  *static_cast<float*>(norm.data) = length;
  float factor = 1.0f;
  if (!std::isfinite(length)) {
    factor = std::numeric_limits<float>::quiet_NaN();
  } else if (max_norm > 0.0f) {
    factor = std::min(1.0f, max_norm / (length + 1e-6f));
  }
  *static_cast<float*>(clip.data) = factor;
}

}  // namespace

void register_optimizer_kernels(Backend& backend) {
  backend.add<ops::AdamWKernel>("exact", &adamw);
  backend.add<ops::SumSquaresKernel>("exact", &sum_squares);
  backend.add<ops::ClipScaleKernel>("exact", &clip_scale);
}

}  // namespace kitchen::reference
