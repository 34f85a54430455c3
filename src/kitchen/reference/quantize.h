#pragma once

#include "kitchen/base/backend.h"
#include "kitchen/ops/quantize.h"

namespace kitchen::reference {

void matrix_amax(const Stream& stream, ConstView x, View amax, const QuantizeSpec& spec);

void quantize(const Stream& stream, ConstView x, ConstView matrix_amax, ConstView scale, View codes,
              View scale_inv, const QuantizeSpec& spec, const ops::RoundingStream& rounding);

void quantize_both(const Stream& stream, ConstView x, View codes, View scale_inv,
                   View transposed_codes, View transposed_scale_inv, const QuantizeSpec& spec);

void dequantize(const Stream& stream, const ops::QuantizedView& x, View out);

void transpose_quantized(const Stream& stream, const ops::QuantizedView& x, View codes,
                         View scale_inv);

void quantization_stats(const Stream& stream, ConstView x, const ops::QuantizedView& quantized,
                        ops::QuantizationStats* stats);

/// fp32 factor of the codes of block (row block i, column block j) of a slice, without the NVFP4
/// amax factor.
float stored_scale(const ops::QuantizedView& x, std::int64_t slice, std::int64_t i, std::int64_t j);

/// The largest finite value of a high-precision dtype: the scale of a tiny amax (S3.1).
float largest_of_dtype(DType dtype);

/// Whether a kernel may gain from a second thread: the work is large and no parallel region runs.
bool worth_threads(std::int64_t elements);

void register_quantize_kernels(Backend& backend);

}  // namespace kitchen::reference
