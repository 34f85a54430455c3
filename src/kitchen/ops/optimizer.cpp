#include "kitchen/ops/optimizer.h"

#include "kitchen/base/error.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/ops/operand_checks.h"

namespace kitchen::ops {

namespace {

void require_same_size(const char* name, const Tensor& x, const Tensor& main) {
  require_contiguous("adamw", name, x);
  if (x.numel() == main.numel()) return;
  throw ValueError(std::string("adamw: ") + name + " has " + std::to_string(x.numel()) +
                   " elements, but main has " + std::to_string(main.numel()));
}

void require_scalar(const char* op, const char* name, const Tensor& x) {
  require_dtype(op, name, x, DType::float32);
  if (x.numel() == 1) return;
  throw ValueError(std::string(op) + ": " + name + " has shape " + to_string(x.shape()) +
                   "; one element is wanted");
}

}  // namespace

void adamw_step(const Tensor& main, const Tensor& exp_avg, const Tensor& exp_avg_sq,
                const Tensor& grad, const Tensor& grad_scale, const Tensor& model,
                const AdamWOptions& options) {
  const ContextPtr& context =
      common_context("adamw", {&main, &exp_avg, &exp_avg_sq, &grad, &grad_scale, &model});
  require_dtype("adamw", "main", main, DType::float32);
  require_dtype("adamw", "exp_avg", exp_avg, DType::float32);
  require_dtype("adamw", "exp_avg_sq", exp_avg_sq, DType::float32);
  require_high_precision("adamw", "grad", grad);
  require_high_precision("adamw", "model", model);
  require_scalar("adamw", "grad_scale", grad_scale);
  require_contiguous("adamw", "main", main);
  require_same_size("exp_avg", exp_avg, main);
  require_same_size("exp_avg_sq", exp_avg_sq, main);
  require_same_size("grad", grad, main);
  require_same_size("model", model, main);
  if (options.step < 1) {
    throw ValueError("adamw: step is " + std::to_string(options.step) +
                     ", but the first update is step 1");
  }
  context->launch<AdamWKernel>({}, main.kernel_view(), exp_avg.kernel_view(),
                               exp_avg_sq.kernel_view(), grad.const_view(), grad_scale.const_view(),
                               model.kernel_view(), options);
}

Tensor sum_squares(const std::vector<Tensor>& tensors) {
  if (tensors.empty()) {
    throw ValueError("sum_squares: no tensor given, so there is no device to work on");
  }
  const ContextPtr& context = tensors.front().context();
  std::vector<Tensor> holders;
  std::vector<ConstView> views;
  for (const Tensor& tensor : tensors) {
    common_context("sum_squares", {&tensors.front(), &tensor});
    require_high_precision("sum_squares", "a tensor", tensor);
    holders.push_back(contiguous(tensor));
    views.push_back(holders.back().const_view());
  }
  const Tensor out = Tensor::empty(context, {1}, DType::float32);
  context->launch<SumSquaresKernel>({}, views, out.kernel_view());
  return out;
}

ClipScale clip_scale(const Tensor& sum_of_squares, float max_norm) {
  require_scalar("clip_scale", "sum_of_squares", sum_of_squares);
  const ContextPtr& context = sum_of_squares.context();
  const ClipScale result{Tensor::empty(context, {1}, DType::float32),
                         Tensor::empty(context, {1}, DType::float32)};
  context->launch<ClipScaleKernel>({}, sum_of_squares.const_view(), max_norm,
                                   result.norm.kernel_view(), result.scale.kernel_view());
  return result;
}

}  // namespace kitchen::ops
