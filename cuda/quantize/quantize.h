#pragma once

#include "kitchen/ops/quantize.h"

namespace kitchen::cuda {

/// CUDA entries of ops/quantize.h.
void matrix_amax(const Stream& stream, ConstView x, View amax, const QuantizeSpec& spec);

void quantize(const Stream& stream, ConstView x, ConstView matrix_amax, ConstView scale, View codes,
              View scale_inv, const QuantizeSpec& spec, const ops::RoundingStream& rounding);

void dequantize(const Stream& stream, const ops::QuantizedView& x, View out);

void transpose_quantized(const Stream& stream, const ops::QuantizedView& x, View codes,
                         View scale_inv);

void quantization_stats(const Stream& stream, ConstView x, const ops::QuantizedView& quantized,
                        ops::QuantizationStats* stats);

}  // namespace kitchen::cuda
