#include "kitchen/ops/norm.h"

#include "kitchen/base/error.h"
#include "kitchen/ops/operand_checks.h"

namespace kitchen::ops {

namespace {

constexpr std::int64_t kRowsPerChunk = 128;

void check_parameters(const char* op, const Tensor& x, const Tensor& gamma, const Tensor& beta,
                      const NormOptions& options) {
  require_high_precision(op, "x", x);
  require_rows(op, "x", x);
  require_high_precision(op, "gamma", gamma);
  require_shape(op, "gamma", gamma, {x.dim(-1)});
  if (!beta.defined()) return;
  if (options.kind == NormKind::rms_norm) {
    throw ValueError(std::string(op) +
                     ": beta is given to an RMS norm, which has none; pass Tensor()");
  }
  require_high_precision(op, "beta", beta);
  require_shape(op, "beta", beta, {x.dim(-1)});
}

/// [rows] as float32 views; layer norm's mean and both kinds' rstd.
void check_statistics(const Tensor& x, const Tensor& mean, const Tensor& rstd,
                      const NormOptions& options) {
  const Shape rows{x.numel() / x.dim(-1)};
  require_dtype("norm_backward", "rstd", rstd, DType::float32);
  require_shape("norm_backward", "rstd", rstd, rows);
  if (options.kind == NormKind::rms_norm) return;
  require_dtype("norm_backward", "mean", mean, DType::float32);
  require_shape("norm_backward", "mean", mean, rows);
}

View view_or_none(const Tensor& tensor) {
  return tensor.defined() ? tensor.kernel_view() : View{};
}

}  // namespace

NormResult norm_forward(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                        const NormOptions& options) {
  check_parameters("norm_forward", x, gamma, beta, options);
  if (options.kind == NormKind::layer_norm && !beta.defined()) {
    throw ValueError("norm_forward: beta is undefined; a layer norm needs it (RMS norm does not)");
  }
  const ContextPtr& context = common_context("norm_forward", {&x, &gamma, &beta});
  const Tensor rows = as_rows(x);
  NormResult result;
  result.y = Tensor::empty(context, x.shape(), x.dtype());
  if (options.kind == NormKind::layer_norm) {
    result.mean = Tensor::empty(context, {rows.dim(0)}, DType::float32);
  }
  result.rstd = Tensor::empty(context, {rows.dim(0)}, DType::float32);
  context->launch<NormForwardKernel>({}, rows.const_view(), dense(gamma).const_view(),
                                     view_or_none(dense(beta)),
                                     result.y.view(rows.shape()).kernel_view(),
                                     view_or_none(result.mean), result.rstd.kernel_view(), options);
  return result;
}

NormGradients norm_backward(const Tensor& dy, const Tensor& x, const Tensor& gamma,
                            const Tensor& mean, const Tensor& rstd, const NormOptions& options) {
  check_parameters("norm_backward", x, gamma, Tensor(), options);
  require_high_precision("norm_backward", "dy", dy);
  require_shape("norm_backward", "dy", dy, x.shape());
  check_statistics(x, mean, rstd, options);
  const ContextPtr& context = common_context("norm_backward", {&dy, &x, &gamma, &mean, &rstd});
  const Tensor dy_rows = as_rows(dy);
  const Tensor x_rows = as_rows(x);
  const std::int64_t cols = x_rows.dim(1);
  const std::int64_t num_chunks = (x_rows.dim(0) + kRowsPerChunk - 1) / kRowsPerChunk;
  NormGradients gradients;
  gradients.dx = Tensor::empty(context, x.shape(), dy.dtype());
  gradients.dgamma = Tensor::empty(context, {cols}, DType::float32);
  if (options.kind == NormKind::layer_norm) {
    gradients.dbeta = Tensor::empty(context, {cols}, DType::float32);
  }
  const Tensor workspace = Tensor::empty(context, {2, num_chunks, cols}, DType::float32);
  context->launch<NormBackwardKernel>(
      {}, dy_rows.const_view(), x_rows.const_view(), dense(gamma).const_view(),
      view_or_none(dense(mean)), dense(rstd).const_view(),
      gradients.dx.view(x_rows.shape()).kernel_view(), gradients.dgamma.kernel_view(),
      view_or_none(gradients.dbeta), workspace.raw_data(), options);
  return gradients;
}

}  // namespace kitchen::ops
