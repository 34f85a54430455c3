#include "kitchen/ops/grouped_gemm.h"

#include "cuda/gemm/gemm.h"
#include "cuda/quantize/quantize.h"
#include "cuda/register_kernels.h"

#include <algorithm>

namespace kitchen::cuda {

namespace {

std::int64_t no_workspace(const ConstView& /*a*/, const ConstView& /*b*/, const ConstView& /*d*/,
                          const ops::GemmEpilogue& /*epilogue*/) {
  return 0;
}

/// Both operands in fp32, one after the other.
std::int64_t dequantized_bytes(const ops::QuantizedView& a, const ops::QuantizedView& b,
                               const ConstView& /*d*/, bool /*accumulate*/) {
  return (a.codes.numel() + b.codes.numel()) * static_cast<std::int64_t>(sizeof(float));
}

/// The codes' shape over fp32 memory.
View fp32_view(const ConstView& codes, void* data) {
  View view;
  view.data = data;
  view.dtype = DType::float32;
  view.rank = 3;
  view.shape = codes.shape;
  view.strides = {codes.shape[1] * codes.shape[2], codes.shape[2], 1, 0, 0, 0};
  return view;
}

void quantized_gemm(const Stream& stream, const ops::QuantizedView& a, const ops::QuantizedView& b,
                    View d, const ops::GemmEpilogue& epilogue, void* workspace) {
  const View left = fp32_view(a.codes, workspace);
  const View right = fp32_view(b.codes, static_cast<float*>(workspace) + a.codes.numel());
  dequantize(stream, a, left);
  dequantize(stream, b, right);
  gemm_tiled(stream, left, right, d, epilogue, nullptr);
}

/// One workspace for all groups: the stream runs them one after the other.
std::int64_t grouped_bytes(const std::vector<ops::QuantizedProblem>& problems) {
  std::int64_t bytes = 0;
  for (const ops::QuantizedProblem& p : problems) {
    bytes = std::max(bytes, dequantized_bytes(p.a, p.b, p.d, p.epilogue.accumulate));
  }
  return bytes;
}

void grouped_quantized_gemm(const Stream& stream,
                            const std::vector<ops::QuantizedProblem>& problems, void* workspace) {
  for (const ops::QuantizedProblem& p : problems) {
    quantized_gemm(stream, p.a, p.b, p.d, p.epilogue, workspace);
  }
}

}  // namespace

void register_gemm_kernels(Backend& backend) {
  backend.add<ops::GemmKernel>("tiled", &gemm_tiled);
  backend.add<ops::GemmKernel>("naive", &gemm_naive);
  backend.add<ops::GemmWorkspaceKernel>("tiled", &no_workspace);
  backend.add<ops::GemmWorkspaceKernel>("naive", &no_workspace);
  backend.add<ops::QuantizedGemmKernel>("fast", &quantized_gemm);
  backend.add<ops::QuantizedGemmWorkspaceKernel>("fast", &dequantized_bytes);
  backend.add<ops::GroupedQuantizedGemmKernel>("fast", &grouped_quantized_gemm);
  backend.add<ops::GroupedQuantizedGemmWorkspaceKernel>("fast", &grouped_bytes);
}

}  // namespace kitchen::cuda
