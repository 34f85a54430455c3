#include "kitchen/ops/gemm.h"

#include "kitchen/base/error.h"
#include "kitchen/ops/elementwise.h"

namespace kitchen::ops {

namespace {

void require_matrix(const char* name, const Tensor& x) {
  if (x.rank() < 2) {
    throw ValueError(std::string("gemm: ") + name + " has shape " + to_string(x.shape()) +
                     ", but a matrix [..., rows, k] is wanted");
  }
  if (!is_high_precision(x.dtype())) {
    throw TypeError(std::string("gemm: ") + name + " has dtype " + to_string(x.dtype()) +
                    "; float32, bfloat16 or float16 is wanted. Dequantize it first");
  }
}

/// Checks a, b and bias; returns the shape of the result.
Shape result_shape(const Tensor& a, const Tensor& b, const Tensor& bias) {
  require_matrix("a", a);
  require_matrix("b", b);
  const std::string shapes = to_string(a.shape()) + " and b " + to_string(b.shape());
  if (a.dim(-1) != b.dim(-1)) {
    throw ValueError("gemm: the reduced (last) dimensions differ: a is " + shapes +
                     "; transpose an operand so that both end with k");
  }
  const Shape batch(a.shape().begin(), a.shape().end() - 2);
  if (batch != Shape(b.shape().begin(), b.shape().end() - 2)) {
    throw ValueError("gemm: the batch (leading) dimensions differ: a is " + shapes);
  }
  Shape shape = a.shape();
  shape.back() = b.dim(-2);
  if (bias.defined()) {
    if (bias.rank() != 1 || bias.dim(0) != b.dim(-2)) {
      throw ValueError("gemm: bias has shape " + to_string(bias.shape()) + ", but [" +
                       std::to_string(b.dim(-2)) + "] is wanted for b " + to_string(b.shape()));
    }
    if (!is_high_precision(bias.dtype())) {
      throw TypeError("gemm: bias has dtype " + to_string(bias.dtype()) +
                      "; float32, bfloat16 or float16 is wanted");
    }
  }
  return shape;
}

/// Sees x [..., r, c] as [batch, r, c] if the strides of the leading dimensions allow it.
bool merge_batch(const View& x, View* merged) {
  merged->data = x.data;
  merged->dtype = x.dtype;
  merged->rank = 3;
  std::int64_t batch = 1;
  std::int64_t stride = 0;
  for (int i = x.rank - 3; i >= 0; --i) {
    const auto dim = static_cast<std::size_t>(i);
    if (x.shape[dim] == 1) continue;
    if (batch == 1) {
      stride = x.strides[dim];
    } else if (x.strides[dim] != stride * batch) {
      return x.numel() == 0;
    }
    batch *= x.shape[dim];
  }
  const auto r = static_cast<std::size_t>(x.rank - 2);
  merged->shape = {batch, x.shape[r], x.shape[r + 1]};
  merged->strides = {stride, x.strides[r], x.strides[r + 1]};
  return true;
}

/// True if [rows, cols] lies in memory with unit stride along one dimension and without overlap.
bool is_dense_matrix(const View& x) {
  const std::int64_t rows = x.shape[1];
  const std::int64_t cols = x.shape[2];
  const bool row_major = (x.strides[2] == 1 || cols <= 1) && (x.strides[1] >= cols || rows <= 1);
  const bool col_major = (x.strides[1] == 1 || rows <= 1) && (x.strides[2] >= rows || cols <= 1);
  return row_major || col_major;
}

/// The operand as the kernel wants it; `holder` keeps the copy alive that other strides need.
View operand_view(const Tensor& x, Tensor* holder) {
  *holder = x;
  View merged;
  if (merge_batch(x.kernel_view(), &merged) && is_dense_matrix(merged)) return merged;
  *holder = Tensor::empty(x.context(), x.shape(), x.dtype());
  copy_into(x, *holder);
  merge_batch(holder->kernel_view(), &merged);
  return merged;
}

}  // namespace

Tensor gemm(const Tensor& a, const Tensor& b, DType out_dtype, const GemmOptions& options) {
  Shape shape = result_shape(a, b, options.bias);
  const Tensor out = Tensor::empty(a.context(), std::move(shape), out_dtype);
  gemm_into(a, b, out, false, options);
  return out;
}

void gemm_into(const Tensor& a, const Tensor& b, const Tensor& out, bool accumulate,
               const GemmOptions& options) {
  const Shape shape = result_shape(a, b, options.bias);
  const ContextPtr& context = common_context("gemm", {&a, &b, &out, &options.bias});
  if (out.shape() != shape) {
    throw ValueError("gemm: out has shape " + to_string(out.shape()) + ", but a " +
                     to_string(a.shape()) + " and b " + to_string(b.shape()) + " give " +
                     to_string(shape));
  }
  if (!is_high_precision(out.dtype())) {
    throw TypeError("gemm: out has dtype " + to_string(out.dtype()) +
                    "; float32, bfloat16 or float16 is wanted");
  }
  View d;
  if (!merge_batch(out.kernel_view(), &d)) {
    throw ValueError("gemm: the batch dimensions of out, shape " + to_string(out.shape()) +
                     " with strides " + to_string(out.strides()) +
                     ", cannot be merged into one; give a contiguous out");
  }
  Tensor a_holder;
  Tensor b_holder;
  const View a_view = operand_view(a, &a_holder);
  const View b_view = operand_view(b, &b_holder);
  GemmEpilogue epilogue;
  epilogue.alpha = options.alpha;
  epilogue.accumulate = accumulate;
  if (options.bias.defined()) epilogue.bias = options.bias.const_view();
  const std::string variant =
      options.variant.empty() ? context->variant_for<GemmKernel>() : options.variant;
  const std::int64_t bytes =
      context->backend().get<GemmWorkspaceKernel>(variant)(a_view, b_view, d, epilogue);
  const Tensor workspace = Tensor::empty(context, {bytes}, DType::uint8);
  context->launch<GemmKernel>(variant, a_view, b_view, d, epilogue, workspace.raw_data());
}

}  // namespace kitchen::ops
