#include "kitchen/ops/quantize.h"

#include "kitchen/base/error.h"
#include "kitchen/base/memory_kernels.h"
#include "kitchen/ops/matrix_slices.h"

#include <cmath>
#include <limits>
#include <utility>

namespace kitchen::ops {

namespace {

void require_high_precision(const char* op, const Tensor& x) {
  if (is_high_precision(x.dtype())) return;
  throw TypeError(std::string(op) + ": x is " + to_string(x.dtype()) +
                  ", expected float32, float16 or bfloat16; cast it first");
}

/// A contiguous tensor as [slices, rows, cols].
View contiguous_slices(const Tensor& x) {
  View view = x.kernel_view();
  merge_slices(view);
  return view;
}

/// x as [slices, rows, cols]; `copy` owns the memory where the strides need a copy.
ConstView matrix_view(const Tensor& x, Tensor* copy) {
  ConstView view = x.const_view();
  if (merge_slices(view)) return view;
  *copy = Tensor::empty(x.context(), x.shape(), x.dtype());
  x.context()->launch<CopyStridedKernel>("", x.const_view(), copy->kernel_view());
  return contiguous_slices(*copy);
}

void require_per_slice(const char* name, const Tensor& values, std::int64_t slices) {
  if (values.dtype() != DType::float32) {
    throw TypeError(std::string("quantize: ") + name + " is " + to_string(values.dtype()) +
                    ", expected float32");
  }
  if (values.numel() == slices && values.rank() == 1 && values.is_contiguous()) return;
  throw ValueError(std::string("quantize: ") + name + " has shape " + to_string(values.shape()) +
                   ", expected [" + std::to_string(slices) + "], one for each slice of x");
}

void require_valid_call(const Tensor& x, const QuantizeSpec& spec, const QuantizeCall& call) {
  require_high_precision("quantize", x);
  validate(spec);
  // The upper byte of that counter word is the usage.
  if (call.rounding.offset >= std::uint64_t{1} << 56) {
    throw ValueError("quantize: rounding offset " + std::to_string(call.rounding.offset) +
                     ", expected below 2^56; take another seed");
  }
  const std::int64_t slices = num_slices(x.shape());
  if (call.amax.defined()) require_per_slice("amax", call.amax, slices);
  if (!call.scale.defined()) return;
  require_per_slice("scale", call.scale, slices);
  if (spec.granularity.is_per_tensor() && !spec.has_byte_scales()) return;
  throw ValueError("quantize: a given scale fits per-tensor specs only, spec is '" +
                   to_string(spec) + "'; leave it out");
}

ConstView view_or_none(const Tensor& x) {
  return x.defined() ? x.const_view() : ConstView();
}

/// Codes and scales of a matrix of `shape`, not yet written.
QuantizedMatrix empty_result(const ContextPtr& context, const Shape& shape,
                             const QuantizeSpec& spec) {
  QuantizedMatrix result;
  result.spec = spec;
  result.codes = Tensor::empty(context, code_shape(spec, shape), code_dtype(spec.format));
  result.scale_inv =
      Tensor::empty(context, scale_shape(spec, result.codes.shape()), scale_dtype(spec));
  return result;
}

}  // namespace

double QuantizationStats::snr_db() const {
  if (noise_power == 0.0) return std::numeric_limits<double>::infinity();
  return 10.0 * std::log10(signal_power / noise_power);
}

QuantizedView quantized_view(const QuantizedMatrix& x) {
  return {contiguous_slices(x.codes), contiguous_slices(x.scale_inv), view_or_none(x.amax), x.spec};
}

Tensor matrix_amax(const Tensor& x, const QuantizeSpec& spec) {
  require_high_precision("matrix_amax", x);
  const ContextPtr& context = common_context("matrix_amax", {&x});
  const Tensor amax = Tensor::empty(context, {num_slices(x.shape())}, DType::float32);
  Tensor copy;
  context->launch<MatrixAmaxKernel>("", matrix_view(x, &copy), amax.kernel_view(), spec);
  return amax;
}

QuantizedMatrix quantize(const Tensor& x, const QuantizeSpec& spec, const QuantizeCall& call) {
  const ContextPtr& context = common_context("quantize", {&x, &call.amax, &call.scale});
  require_valid_call(x, spec, call);
  QuantizedMatrix result = empty_result(context, x.shape(), spec);
  if (spec.needs_matrix_amax()) {
    result.amax = call.amax.defined() ? call.amax : matrix_amax(x, spec);
  }
  Tensor copy;
  const ConstView input = matrix_view(x, &copy);
  context->launch<QuantizeKernel>("", input, view_or_none(result.amax), view_or_none(call.scale),
                                  contiguous_slices(result.codes),
                                  contiguous_slices(result.scale_inv), spec, call.rounding);
  return result;
}

QuantizedPair quantize_both(const Tensor& x, const QuantizeSpec& spec) {
  const ContextPtr& context = common_context("quantize_both", {&x});
  require_valid_call(x, spec, {});
  if (spec.stochastic) {
    throw ValueError("quantize_both: '" + to_string(spec) +
                     "' rounds stochastically; quantize each copy with its own rounding stream");
  }
  const Tensor transpose = x.transpose(-2, -1);
  if (spec.needs_matrix_amax() || context->backend().variants<QuantizeBothKernel>().empty()) {
    QuantizeCall call;
    QuantizedPair pair;
    pair.rowwise = quantize(x, spec);
    // A Hadamard transform makes the amax depend on the direction.
    if (!spec.hadamard) call.amax = pair.rowwise.amax;
    pair.columnwise = quantize(transpose, spec, call);
    return pair;
  }
  QuantizedPair pair{empty_result(context, x.shape(), spec),
                     empty_result(context, transpose.shape(), spec)};
  Tensor copy;
  context->launch<QuantizeBothKernel>(
      "", matrix_view(x, &copy), contiguous_slices(pair.rowwise.codes),
      contiguous_slices(pair.rowwise.scale_inv), contiguous_slices(pair.columnwise.codes),
      contiguous_slices(pair.columnwise.scale_inv), spec);
  return pair;
}

Tensor dequantize(const QuantizedMatrix& x, DType out_dtype) {
  const ContextPtr& context = common_context("dequantize", {&x.codes, &x.scale_inv, &x.amax});
  if (!is_high_precision(out_dtype)) {
    throw TypeError("dequantize: output dtype " + to_string(out_dtype) +
                    ", expected float32, float16 or bfloat16");
  }
  const Tensor out = Tensor::empty(context, x.codes.shape(), out_dtype);
  context->launch<DequantizeKernel>("", quantized_view(x), contiguous_slices(out));
  return out;
}

QuantizedMatrix transpose_quantized(const QuantizedMatrix& x) {
  const ContextPtr& context = common_context("transpose_quantized", {&x.codes, &x.scale_inv});
  const bool square = x.spec.granularity.rows == x.spec.granularity.cols;
  if (!square || x.spec.stochastic || x.spec.hadamard) {
    throw ValueError("transpose_quantized: the codes of '" + to_string(x.spec) +
                     "' do not hold the columnwise copy; quantize the transposed original");
  }
  Shape shape = x.codes.shape();
  std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  QuantizedMatrix result;
  result.spec = x.spec;
  result.amax = x.amax;
  result.codes = Tensor::empty(context, shape, x.codes.dtype());
  result.scale_inv = Tensor::empty(context, scale_shape(x.spec, shape), x.scale_inv.dtype());
  context->launch<TransposeQuantizedKernel>("", quantized_view(x), contiguous_slices(result.codes),
                                            contiguous_slices(result.scale_inv));
  return result;
}

QuantizationStats quantization_stats(const Tensor& x, const QuantizedMatrix& quantized) {
  const ContextPtr& context =
      common_context("quantization_stats", {&x, &quantized.codes, &quantized.scale_inv});
  require_high_precision("quantization_stats", x);
  if (code_shape(quantized.spec, x.shape()) != quantized.codes.shape()) {
    throw ValueError("quantization_stats: x has shape " + to_string(x.shape()) + ", its codes " +
                     to_string(quantized.codes.shape()) + "; pass the tensor that was quantized");
  }
  QuantizationStats stats;
  Tensor copy;
  context->launch<QuantizationStatsKernel>("", matrix_view(x, &copy), quantized_view(quantized),
                                           &stats);
  return stats;
}

}  // namespace kitchen::ops
