#pragma once

#include "kitchen/base/tensor.h"
#include "kitchen/formats/quantized_matrix.h"

#include <cstdint>

/// @file  quantize.h
/// @brief Quantization, its inverse and its error (numerics.md S3, S4). Exact: all backends give
/// the same bytes.

namespace kitchen::ops {

/// Place of one quantization in the random stream of stochastic rounding (S2.2).
struct RoundingStream {
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;  ///< quantizations done so far with this seed, below 2^56
  std::uint8_t usage = 0;    ///< 0 rowwise copy, 1 columnwise copy
};

/// What a kernel sees of a QuantizedMatrix: codes [slices, rows, cols] and scales [slices, ...],
/// both contiguous and of rank 3; amax [slices] or undefined.
struct QuantizedView {
  ConstView codes;
  ConstView scale_inv;
  ConstView amax;
  QuantizeSpec spec;
};

/// Kernel: the largest |x| of each slice of x [slices, rows, cols] (any strides, high-precision
/// dtype) into amax [slices] float32, NaN skipped, 0 for an empty slice; after the Hadamard
/// transform if `spec` has one.
struct MatrixAmaxKernel {
  static constexpr const char* kName = "matrix_amax";
  using Fn = void (*)(const Stream&, ConstView x, View amax, const QuantizeSpec& spec);
};

/// Kernel: codes and scales of x [slices, rows, cols], any strides, high-precision dtype.
/// `matrix_amax` [slices] is defined where spec.needs_matrix_amax() and no `scale` is given;
/// `scale` [slices] replaces the scale of per-tensor specs (delayed scaling) or is undefined.
struct QuantizeKernel {
  static constexpr const char* kName = "quantize";
  using Fn = void (*)(const Stream&, ConstView x, ConstView matrix_amax, ConstView scale,
                      View codes, View scale_inv, const QuantizeSpec& spec,
                      const RoundingStream& rounding);
};

/// Kernel: what QuantizeKernel makes of x [slices, rows, cols] and of its transpose, for specs that
/// need no amax of the matrix and draw no random words. Optional: a backend without it makes the two
/// copies one after the other.
struct QuantizeBothKernel {
  static constexpr const char* kName = "quantize_both";
  using Fn = void (*)(const Stream&, ConstView x, View codes, View scale_inv, View transposed_codes,
                      View transposed_scale_inv, const QuantizeSpec& spec);
};

/// Kernel: out [slices, rows, cols] contiguous, any high-precision dtype: code · scale_inv in fp32,
/// one rounding.
struct DequantizeKernel {
  static constexpr const char* kName = "dequantize";
  using Fn = void (*)(const Stream&, const QuantizedView& x, View out);
};

/// Kernel: the transposed codes and scales; see transpose_quantized.
struct TransposeQuantizedKernel {
  static constexpr const char* kName = "transpose_quantized";
  using Fn = void (*)(const Stream&, const QuantizedView& x, View codes, View scale_inv);
};

/// Error of one quantization. Elements that are NaN or Inf count in `num_non_finite` and nowhere
/// else.
struct QuantizationStats {
  double signal_power = 0.0;  ///< Σ x²
  double noise_power = 0.0;   ///< Σ (x - x̂)²
  std::int64_t num_elements = 0;
  std::int64_t num_saturated = 0;    ///< larger than what rounds to the largest code
  std::int64_t num_underflowed = 0;  ///< not 0, but quantized to 0
  std::int64_t num_non_finite = 0;

  /// 10·log10(signal / noise); +Inf without noise.
  [[nodiscard]] double snr_db() const;
};

/// Kernel: statistics of x against its quantized form, into host memory; returns when they have
/// arrived. Sums are fp64, one a row with columns ascending, rows added in ascending order.
struct QuantizationStatsKernel {
  static constexpr const char* kName = "quantization_stats";
  using Fn = void (*)(const Stream&, ConstView x, const QuantizedView& quantized,
                      QuantizationStats* stats);
};

/// Arguments of quantize besides matrix and spec.
struct QuantizeCall {
  RoundingStream rounding;  ///< read if the spec is stochastic
  Tensor amax;   ///< [slices] float32: used instead of the amax of `x` (ranks that share one scale)
  Tensor scale;  ///< [slices] float32: used instead of any computed scale (delayed scaling), per
                 ///< tensor only
};

/// Quantizes x [..., rows, cols] to `spec`; leading dimensions are independent slices.
///
/// Any strides: the columnwise copy is made by passing `x.transpose(-2, -1)`. Saturating cast, ties
/// to even. Blocks at the edges may be smaller; sizes may be 0. A NaN is never lost: codes with a
/// NaN hold it, else the block's scale becomes NaN (S3). Where the whole matrix's amax matters, the
/// result holds it; with `call.scale` it is the amax of `x`, for the history.
/// @throws TypeError if x is neither float32, float16 nor bfloat16, or amax or scale is not
/// float32;
///         ValueError on a rank below 2, a refused spec, or amax or scale of another size than
///         [slices].
QuantizedMatrix quantize(const Tensor& x, const QuantizeSpec& spec, const QuantizeCall& call = {});

/// The copies of one matrix for the products that reduce along its columns and along its rows.
struct QuantizedPair {
  QuantizedMatrix rowwise;
  QuantizedMatrix columnwise;
};

/// quantize(x, spec) and quantize(x.transpose(-2, -1), spec), the same bytes, from one read of x
/// where the backend can; otherwise one after the other, with one search for the amax.
/// @throws ValueError for stochastic rounding, whose copies draw from streams of their own; what
/// quantize throws.
QuantizedPair quantize_both(const Tensor& x, const QuantizeSpec& spec);

/// The amax that quantize(x, spec) would use: [slices] float32. For a max-reduction over ranks.
Tensor matrix_amax(const Tensor& x, const QuantizeSpec& spec);

/// The values that the codes stand for, [..., rows, cols] contiguous. A Hadamard transform is not
/// undone.
/// @throws TypeError if `out_dtype` is not a high-precision dtype.
Tensor dequantize(const QuantizedMatrix& x, DType out_dtype);

/// The quantized transpose made of the codes, without the original: equal to
/// quantize(x.transpose(-2, -1)) for per-tensor scales and square blocks, rounded to nearest.
/// @throws ValueError for other specs: their columnwise copy must come from the original.
QuantizedMatrix transpose_quantized(const QuantizedMatrix& x);

/// Signal, noise and counters of `x` against `quantized`, which was made from it. Waits for the
/// device. All zero on the meta device.
/// @throws ValueError if the shapes do not belong together.
QuantizationStats quantization_stats(const Tensor& x, const QuantizedMatrix& quantized);

/// `x` as a kernel sees it. For ops on quantized operands.
QuantizedView quantized_view(const QuantizedMatrix& x);

}  // namespace kitchen::ops
