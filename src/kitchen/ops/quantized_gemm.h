#pragma once

#include "kitchen/formats/quantized_matrix.h"
#include "kitchen/ops/gemm.h"
#include "kitchen/ops/quantize.h"

namespace kitchen::ops {

/// Kernel: d[i, m, n] = Σ_k a[i, m, k]·b[i, n, k] of dequantized values over slices i; views of
/// rank 3, d with unit column stride. `workspace` has at least the bytes that
/// QuantizedGemmWorkspaceKernel gave.
///
/// Variants on the CPU (numerics.md S5.1): "fast" decodes to fp32 and calls the BLAS, bounded as
/// GemmKernel; "ref32" follows the order of the reference to the letter, exact; "ref64" sums
/// products of dequantized values in fp64 and rounds once, exact, the oracle.
struct QuantizedGemmKernel {
  static constexpr const char* kName = "quantized_gemm";
  using Fn = void (*)(const Stream&, const QuantizedView& a, const QuantizedView& b, View d,
                      const GemmEpilogue& epilogue, void* workspace);
};

/// Bytes of workspace that the QuantizedGemmKernel of the same variant name needs.
struct QuantizedGemmWorkspaceKernel {
  static constexpr const char* kName = "quantized_gemm_workspace";
  using Fn = std::int64_t (*)(const QuantizedView& a, const QuantizedView& b, const ConstView& d,
                              bool accumulate);
};

/// One checked product, as the kernels take it.
struct QuantizedProblem {
  QuantizedView a;
  QuantizedView b;
  View d;
  GemmEpilogue epilogue;
};

/// d = alpha · a·bᵀ (+ bias) for quantized a [slices..., m, k] and b [slices..., n, k].
///
/// Order of the end (S5.3): fp32 sum -> · scales · alpha -> + bias -> one rounding. k = 0 gives
/// zeros (plus bias); m = 0 or n = 0 gives an empty result. Operands may differ in format and in
/// granularity.
/// @param options variant: "" or "fast", "ref32", "ref64"; bias [n].
/// @returns [slices..., m, n] in `out_dtype`, contiguous.
/// @throws ValueError naming both shapes if k or the slices differ, if one operand alone went
/// through a Hadamard transform, or if an operand's codes, scales or amax are not those of its spec
/// (scales in a backend's layout are another type, ops/scale_layout.h); TypeError on other output
/// dtypes.
Tensor quantized_gemm(const QuantizedMatrix& a, const QuantizedMatrix& b, DType out_dtype,
                      const GemmOptions& options = {});

/// As quantized_gemm, writing into `out` [slices..., m, n], whose rows may have any stride; adds to
/// its values if `accumulate`. An fp32 `out` receives the fp32 sum without a rounding in between.
void quantized_gemm_into(const QuantizedMatrix& a, const QuantizedMatrix& b, const Tensor& out,
                         bool accumulate, const GemmOptions& options = {});

/// What quantized_gemm_into checks and hands to its kernel. For ops that run several products.
QuantizedProblem quantized_problem(const QuantizedMatrix& a, const QuantizedMatrix& b,
                                   const Tensor& out, bool accumulate, const GemmOptions& options);

}  // namespace kitchen::ops
