#include "kitchen/ops/quantized_gemm.h"

#include "kitchen/base/error.h"
#include "kitchen/ops/matrix_slices.h"

#include <algorithm>

namespace kitchen::ops {

namespace {

Shape result_shape(const QuantizedMatrix& a, const QuantizedMatrix& b) {
  Shape shape = a.codes.shape();
  const Shape& other = b.codes.shape();
  const bool fits = shape.size() == other.size() && shape.back() == other.back() &&
                    std::equal(shape.begin(), shape.end() - 2, other.begin());
  if (!fits) {
    throw ValueError("quantized_gemm: a is " + to_string(shape) + " and b " + to_string(other) +
                     ", expected [slices..., m, k] and [slices..., n, k]");
  }
  shape.back() = other[other.size() - 2];
  return shape;
}

void require_bias(const Tensor& bias, std::int64_t n) {
  if (!bias.defined()) return;
  if (!is_high_precision(bias.dtype())) {
    throw TypeError("quantized_gemm: bias is " + to_string(bias.dtype()) +
                    ", expected float32, float16 or bfloat16");
  }
  if (bias.rank() == 1 && bias.dim(0) == n && bias.is_contiguous()) return;
  throw ValueError("quantized_gemm: bias has shape " + to_string(bias.shape()) +
                   ", expected contiguous [" + std::to_string(n) + "]");
}

/// `out` as [slices, m, n]. @throws ValueError if its strides do not allow it.
View result_view(const Tensor& out) {
  View view = out.kernel_view();
  const bool merged = merge_slices(view);
  if (merged && (view.strides[2] == 1 || view.shape[2] <= 1 || view.numel() == 0)) return view;
  throw ValueError("quantized_gemm: out has strides " + to_string(out.strides()) +
                   ", expected contiguous rows and evenly spaced slices");
}

}  // namespace

Tensor quantized_gemm(const QuantizedMatrix& a, const QuantizedMatrix& b, DType out_dtype,
                      const GemmOptions& options) {
  const ContextPtr& context = common_context("quantized_gemm", {&a.codes, &b.codes, &options.bias});
  if (!is_high_precision(out_dtype)) {
    throw TypeError("quantized_gemm: output dtype " + to_string(out_dtype) +
                    ", expected float32, float16 or bfloat16");
  }
  Tensor out = Tensor::empty(context, result_shape(a, b), out_dtype);
  quantized_gemm_into(a, b, out, false, options);
  return out;
}

void quantized_gemm_into(const QuantizedMatrix& a, const QuantizedMatrix& b, const Tensor& out,
                         bool accumulate, const GemmOptions& options) {
  const ContextPtr& context =
      common_context("quantized_gemm", {&a.codes, &b.codes, &out, &options.bias});
  const Shape shape = result_shape(a, b);
  if (out.shape() != shape) {
    throw ValueError("quantized_gemm: out is " + to_string(out.shape()) + ", expected " +
                     to_string(shape));
  }
  if (!is_high_precision(out.dtype())) {
    throw TypeError("quantized_gemm: out is " + to_string(out.dtype()) +
                    ", expected float32, float16 or bfloat16");
  }
  require_bias(options.bias, shape.back());
  GemmEpilogue epilogue;
  epilogue.alpha = options.alpha;
  epilogue.accumulate = accumulate;
  if (options.bias.defined()) epilogue.bias = options.bias.const_view();
  const QuantizedView a_view = quantized_view(a);
  const QuantizedView b_view = quantized_view(b);
  const View d = result_view(out);
  const auto bytes_of_workspace =
      context->backend().get<QuantizedGemmWorkspaceKernel>(options.variant);
  const std::int64_t bytes = bytes_of_workspace(a_view, b_view, d, accumulate);
  const Tensor workspace = Tensor::empty(context, {bytes}, DType::uint8);
  context->launch<QuantizedGemmKernel>(options.variant, a_view, b_view, d, epilogue,
                                       workspace.raw_data());
  out.bump_version();
}

}  // namespace kitchen::ops
