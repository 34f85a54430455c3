#include "kitchen/ops/dropout.h"

#include "kitchen/base/error.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/ops/operand_checks.h"

namespace kitchen::ops {

namespace {

void require_probability(const char* op, float p) {
  if (p >= 0.0f && p < 1.0f) return;
  throw ValueError(std::string(op) + ": the probability to drop is " + std::to_string(p) +
                   ", but it must be at least 0 and below 1");
}

}  // namespace

Tensor dropout(const Tensor& x, float p, const Rng& rng) {
  require_probability("dropout", p);
  require_high_precision("dropout", "x", x);
  const Tensor out = Tensor::empty(x.context(), x.shape(), x.dtype());
  x.context()->launch<DropoutKernel>({}, contiguous(x).const_view(), p, rng, out.kernel_view());
  return out;
}

Tensor bias_dropout_add(const Tensor& x, const Tensor& bias, const Tensor& residual, float p,
                        const Rng& rng) {
  constexpr const char* kOp = "bias_dropout_add";
  const ContextPtr& context = common_context(kOp, {&x, &bias, &residual});
  require_probability(kOp, p);
  require_high_precision(kOp, "x", x);
  require_high_precision(kOp, "residual", residual);
  require_shape(kOp, "residual", residual, x.shape());
  const Tensor rows = as_dense_rows(kOp, x);
  ConstView bias_view;
  if (bias.defined()) {
    require_high_precision(kOp, "bias", bias);
    require_shape(kOp, "bias", bias, {rows.dim(1)});
    bias_view = bias.const_view();
  }
  const Tensor out = Tensor::empty(context, x.shape(), residual.dtype());
  context->launch<BiasDropoutAddKernel>({}, rows.const_view(), bias_view,
                                        as_dense_rows(kOp, residual).const_view(), p, rng,
                                        out.view(rows.shape()).kernel_view());
  return out;
}

}  // namespace kitchen::ops
