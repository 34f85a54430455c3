#include "kitchen/ops/quantized_gemm.h"

#include "kitchen/base/error.h"
#include "kitchen/ops/matrix_slices.h"

#include <algorithm>
#include <string>

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

void require_output_dtype(const char* name, DType dtype) {
  if (is_high_precision(dtype)) return;
  throw TypeError(std::string("quantized_gemm: ") + name + " is " + to_string(dtype) +
                  ", expected float32, float16 or bfloat16; quantize the result for codes");
}

/// @throws ValueError or TypeError unless codes, scales and amax are what the spec says. The
/// scales' shape tells the row-major layout from most others; LaidOutScales is a type of its own.
void require_spec_holds(const char* name, const QuantizedMatrix& x) {
  const std::string subject = std::string("quantized_gemm: ") + name + " '" + to_string(x.spec);
  if (x.codes.dtype() != code_dtype(x.spec.format) || x.scale_inv.dtype() != scale_dtype(x.spec)) {
    throw TypeError(subject + "' has codes " + to_string(x.codes.dtype()) + " and scales " +
                    to_string(x.scale_inv.dtype()) + ", expected " +
                    to_string(code_dtype(x.spec.format)) + " and " +
                    to_string(scale_dtype(x.spec)));
  }
  const Shape expected = scale_shape(x.spec, x.codes.shape());
  if (x.scale_inv.shape() != expected || !x.scale_inv.is_contiguous()) {
    throw ValueError(subject + "' has scales of shape " + to_string(x.scale_inv.shape()) +
                     " with strides " + to_string(x.scale_inv.strides()) +
                     ", expected row-major contiguous " + to_string(expected) +
                     "; bring other layouts back with restore_scales");
  }
  if (!x.codes.is_contiguous()) {
    throw ValueError(subject + "' has codes with strides " + to_string(x.codes.strides()) +
                     ", expected contiguous " + to_string(x.codes.shape()));
  }
  if (x.spec.rule == formats::ScaleRule::nvfp4 && !x.amax.defined()) {
    throw ValueError(subject + "' has no amax, which its scales are relative to");
  }
}

/// The transform cancels only where both operands went through it (S4).
void require_same_transform(const QuantizeSpec& a, const QuantizeSpec& b) {
  if (a.hadamard == b.hadamard) return;
  throw ValueError("quantized_gemm: a is '" + to_string(a) + "' and b '" + to_string(b) +
                   "'; a Hadamard transform must be on both operands or on none");
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
  require_output_dtype("output dtype", out_dtype);
  Tensor out = Tensor::empty(context, result_shape(a, b), out_dtype);
  quantized_gemm_into(a, b, out, false, options);
  return out;
}

void quantized_gemm_into(const QuantizedMatrix& a, const QuantizedMatrix& b, const Tensor& out,
                         bool accumulate, const GemmOptions& options) {
  const QuantizedProblem problem = quantized_problem(a, b, out, accumulate, options);
  const ContextPtr& context = out.context();
  const auto bytes_of_workspace =
      context->backend().get<QuantizedGemmWorkspaceKernel>(options.variant);
  const std::int64_t bytes = bytes_of_workspace(problem.a, problem.b, problem.d, accumulate);
  const Tensor workspace = Tensor::empty(context, {bytes}, DType::uint8);
  context->launch<QuantizedGemmKernel>(options.variant, problem.a, problem.b, problem.d,
                                       problem.epilogue, workspace.raw_data());
  out.bump_version();
}

QuantizedProblem quantized_problem(const QuantizedMatrix& a, const QuantizedMatrix& b,
                                   const Tensor& out, bool accumulate, const GemmOptions& options) {
  common_context("quantized_gemm", {&a.codes, &a.scale_inv, &a.amax, &b.codes, &b.scale_inv,
                                    &b.amax, &out, &options.bias});
  const Shape shape = result_shape(a, b);
  require_spec_holds("a", a);
  require_spec_holds("b", b);
  require_same_transform(a.spec, b.spec);
  if (out.shape() != shape) {
    throw ValueError("quantized_gemm: out is " + to_string(out.shape()) + ", expected " +
                     to_string(shape));
  }
  require_output_dtype("out", out.dtype());
  require_bias(options.bias, shape.back());
  QuantizedProblem problem{quantized_view(a), quantized_view(b), result_view(out), {}};
  problem.epilogue.alpha = options.alpha;
  problem.epilogue.accumulate = accumulate;
  if (options.bias.defined()) problem.epilogue.bias = options.bias.const_view();
  return problem;
}

}  // namespace kitchen::ops
