#pragma once

#include "kitchen/base/backend.h"
#include "kitchen/ops/quantized_gemm.h"

namespace kitchen::reference {

/// Decodes to fp32 and calls the BLAS.
void quantized_gemm_fast(const Stream& stream, const ops::QuantizedView& a,
                         const ops::QuantizedView& b, View d, const ops::GemmEpilogue& epilogue,
                         void* workspace);

/// The order of numerics.md S5.1, one fp32 sum an output element.
void quantized_gemm_ref32(const Stream& stream, const ops::QuantizedView& a,
                          const ops::QuantizedView& b, View d, const ops::GemmEpilogue& epilogue,
                          void* workspace);

/// fp64 throughout, one rounding: the oracle.
void quantized_gemm_ref64(const Stream& stream, const ops::QuantizedView& a,
                          const ops::QuantizedView& b, View d, const ops::GemmEpilogue& epilogue,
                          void* workspace);

/// Factor of a product of two NVFP4 operands, 1 for others: the global parts of both scales (S3.6).
float global_factor(const ops::QuantizedView& a, const ops::QuantizedView& b, std::int64_t slice);

void register_quantized_gemm_kernels(Backend& backend);

}  // namespace kitchen::reference
