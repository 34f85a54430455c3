#include "kitchen/ops/elementwise.h"

#include "kitchen/base/error.h"
#include "kitchen/base/memory_kernels.h"
#include "kitchen/ops/operand_checks.h"

namespace kitchen::ops {

namespace {

void launch_sum_rows(const Tensor& x, const Tensor& target, bool accumulate) {
  require_high_precision("sum_rows", "x", x);
  const bool usable = x.rank() == 2 && (x.dim(1) <= 1 || x.strides()[1] == 1);
  const Tensor rows = usable ? x : as_dense_rows("sum_rows", x);
  x.context()->launch<SumRowsKernel>({}, rows.const_view(), target.kernel_view(), accumulate);
}

}  // namespace

Tensor contiguous(const Tensor& x) {
  if (x.is_contiguous()) return x.detach();
  const Tensor out = Tensor::empty(x.context(), x.shape(), x.dtype());
  x.context()->launch<CopyStridedKernel>({}, x.const_view(), out.kernel_view());
  return out;
}

Tensor cast(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x.detach();
  const Tensor out = Tensor::empty(x.context(), x.shape(), dtype);
  copy_into(x, out);
  return out;
}

void copy_into(const Tensor& source, const Tensor& target) {
  const ContextPtr& context = common_context("copy_into", {&source, &target});
  require_shape("copy_into", "target", target, source.shape());
  if (source.dtype() == target.dtype()) {
    context->launch<CopyStridedKernel>({}, source.const_view(), target.kernel_view());
    return;
  }
  require_high_precision("cast", "source", source);
  require_high_precision("cast", "target", target);
  context->launch<CastKernel>({}, source.const_view(), target.kernel_view());
}

Tensor add(const Tensor& a, const Tensor& b) {
  const ContextPtr& context = common_context("add", {&a, &b});
  require_shape("add", "b", b, a.shape());
  require_high_precision("add", "a", a);
  require_high_precision("add", "b", b);
  const Tensor out = Tensor::empty(context, a.shape(), a.dtype());
  context->launch<AxpbyKernel>({}, 1.0f, contiguous(a).const_view(), 1.0f,
                               contiguous(b).const_view(), out.kernel_view());
  return out;
}

Tensor multiply(const Tensor& a, const Tensor& b) {
  const ContextPtr& context = common_context("multiply", {&a, &b});
  require_shape("multiply", "b", b, a.shape());
  require_high_precision("multiply", "a", a);
  require_high_precision("multiply", "b", b);
  const Tensor out = Tensor::empty(context, a.shape(), a.dtype());
  context->launch<MultiplyKernel>({}, contiguous(a).const_view(), contiguous(b).const_view(),
                                  out.kernel_view());
  return out;
}

void add_inplace(const Tensor& target, const Tensor& source, float alpha) {
  const ContextPtr& context = common_context("add_inplace", {&target, &source});
  require_high_precision("add_inplace", "target", target);
  require_high_precision("add_inplace", "source", source);
  if (target.numel() != source.numel()) {
    throw ValueError("add_inplace: target " + to_string(target.shape()) + " and source " +
                     to_string(source.shape()) + " have different numbers of elements");
  }
  const Tensor terms = contiguous(source);
  const Tensor sums = contiguous(target);
  context->launch<AxpbyKernel>({}, 1.0f, sums.const_view(), alpha, terms.const_view(),
                               sums.kernel_view());
  if (!target.is_contiguous()) copy_into(sums, target);
}

Tensor scale(const Tensor& x, float factor) {
  require_high_precision("scale", "x", x);
  const Tensor out = Tensor::empty(x.context(), x.shape(), x.dtype());
  x.context()->launch<ScaleKernel>({}, factor, x.const_view(), out.kernel_view());
  return out;
}

void scale_inplace(const Tensor& x, float factor) {
  require_high_precision("scale_inplace", "x", x);
  x.context()->launch<ScaleKernel>({}, factor, x.const_view(), x.kernel_view());
}

void fill_inplace(const Tensor& x, float value) {
  require_high_precision("fill_inplace", "x", x);
  x.context()->launch<FillKernel>({}, value, x.kernel_view());
}

Tensor add_bias(const Tensor& x, const Tensor& bias) {
  const ContextPtr& context = common_context("add_bias", {&x, &bias});
  require_high_precision("add_bias", "x", x);
  require_high_precision("add_bias", "bias", bias);
  const Tensor rows = as_dense_rows("add_bias", x);
  require_shape("add_bias", "bias", bias, {rows.dim(1)});
  const Tensor out = Tensor::empty(context, x.shape(), x.dtype());
  context->launch<AddBiasKernel>({}, rows.const_view(), bias.const_view(),
                                 out.view(rows.shape()).kernel_view());
  return out;
}

Tensor sum_rows(const Tensor& x) {
  if (x.rank() == 0) throw ValueError("sum_rows: a scalar has no columns");
  const Tensor out = Tensor::empty(x.context(), {x.dim(-1)}, DType::float32);
  launch_sum_rows(x, out, false);
  return out;
}

void sum_rows_into(const Tensor& x, const Tensor& target) {
  common_context("sum_rows_into", {&x, &target});
  if (x.rank() == 0) throw ValueError("sum_rows_into: a scalar has no columns");
  require_shape("sum_rows_into", "target", target, {x.dim(-1)});
  require_dtype("sum_rows_into", "target", target, DType::float32);
  require_contiguous("sum_rows_into", "target", target);
  launch_sum_rows(x, target, true);
}

Tensor sum_all(const Tensor& x) {
  require_high_precision("sum_all", "x", x);
  const Tensor out = Tensor::empty(x.context(), {1}, DType::float32);
  x.context()->launch<SumAllKernel>({}, contiguous(x).const_view(), out.kernel_view());
  return out;
}

}  // namespace kitchen::ops
