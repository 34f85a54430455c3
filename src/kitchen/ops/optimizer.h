#pragma once

#include "kitchen/base/tensor.h"

#include <vector>

namespace kitchen::ops {

struct AdamWOptions {
  float lr = 1e-3f;
  float beta1 = 0.9f;
  float beta2 = 0.95f;
  float eps = 1e-8f;
  float weight_decay = 0.0f;
  std::int64_t step = 1;  ///< 1 for the first update; bias corrections use it
};

/// Kernel, all fp32 without fused multiply-adds, in this order:
///   g = grad·grad_scale[0];  m = beta1·m + (1 - beta1)·g;  v = beta2·v + (1 - beta2)·(g·g);
///   main = main - lr·((m·c1) / (sqrt(v·c2) + eps) + weight_decay·main)
/// with c = 1 / (1 - beta^step) in fp64, rounded once. Then model = main rounded to its dtype.
/// Contiguous, same numel; model may be main itself. main, exp_avg (m), exp_avg_sq (v) are float32.
/// If grad_scale[0] is not finite, nothing changes (the step is skipped). Exact.
struct AdamWKernel {
  static constexpr const char* kName = "adamw";
  using Fn = void (*)(const Stream&, View main, View exp_avg, View exp_avg_sq, ConstView grad,
                      ConstView grad_scale, View model, const AdamWOptions&);
};

/// Kernel: out[0] (float32) = Σ x² over all views: fp64 partial sums over chunks of 4096 elements
/// (8 interleaved sums, as SumAllKernel), added in ascending order of view and chunk, rounded once:
/// the result does not depend on threads. Contiguous views of high-precision dtypes. Exact.
struct SumSquaresKernel {
  static constexpr const char* kName = "sum_squares";
  using Fn = void (*)(const Stream&, const std::vector<ConstView>& tensors, View out);
};

/// Kernel: norm[0] = sqrt(sum_squares[0]); clip[0] = min(1, max_norm / (norm + 1e-6)), or NaN if
/// the norm is not finite, which makes AdamW skip. max_norm <= 0: no clipping.
struct ClipScaleKernel {
  static constexpr const char* kName = "clip_scale";
  using Fn = void (*)(const Stream&, ConstView sum_squares, float max_norm, View norm, View clip);
};

/// One AdamW update of `main` in place; `model` (float32, bfloat16 or float16) receives the rounded
/// weights.
/// @throws ValueError if numbers of elements differ, a tensor is not contiguous or step < 1;
/// TypeError if main or a moment is not float32.
/// @source Decoupled Weight Decay Regularization, arXiv:1711.05101.
void adamw_step(const Tensor& main, const Tensor& exp_avg, const Tensor& exp_avg_sq,
                const Tensor& grad, const Tensor& grad_scale, const Tensor& model,
                const AdamWOptions& options);

/// Σ x² of all tensors, float32 [1]. No host synchronisation.
Tensor sum_squares(const std::vector<Tensor>& tensors);

struct ClipScale {
  Tensor norm;   ///< float32 [1]: the global 2-norm
  Tensor scale;  ///< float32 [1]: factor for the gradients
};

/// The global norm and the factor that keeps it at or below `max_norm` (see ClipScaleKernel).
ClipScale clip_scale(const Tensor& sum_of_squares, float max_norm);

}  // namespace kitchen::ops
