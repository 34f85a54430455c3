#include "cuda/quantize/quantize.h"
#include "cuda/register_kernels.h"

namespace kitchen::cuda {

void register_quantize_kernels(Backend& backend) {
  backend.add<ops::MatrixAmaxKernel>("exact", &matrix_amax);
  backend.add<ops::QuantizeKernel>("exact", &quantize);
  backend.add<ops::DequantizeKernel>("exact", &dequantize);
  backend.add<ops::TransposeQuantizedKernel>("exact", &transpose_quantized);
  backend.add<ops::QuantizationStatsKernel>("exact", &quantization_stats);
}

}  // namespace kitchen::cuda
