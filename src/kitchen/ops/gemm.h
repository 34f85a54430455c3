#pragma once

#include "kitchen/base/tensor.h"

#include <string>

namespace kitchen::ops {

/// How a GEMM ends: acc (fp32) -> · alpha -> + bias -> + C when accumulating -> one rounding
/// (S5.3).
struct GemmEpilogue {
  float alpha = 1.0f;
  ConstView bias;           ///< [n] or undefined; any high-precision dtype
  bool accumulate = false;  ///< add to what `d` holds
};

/// Kernel: d[i, m, n] = Σ_k a[i, m, k]·b[i, n, k] over an optional batch i. Views are of rank 3
/// (batch 1 for plain GEMMs). In a and b one of the last two dimensions has unit stride (or size
/// 1), and the stride of the other one is at least that dimension's size; d may have any strides
/// without overlap. `workspace` has at least the bytes that GemmWorkspaceKernel gave for the same
/// arguments. Results do not depend on the number of CPU threads. Bounded: |error| <= (k +
/// 3)·2^-24·Σ|a||b| before the output rounding; variant "exact" sums products in fp64 and rounds
/// once, and is the oracle.
struct GemmKernel {
  static constexpr const char* kName = "gemm";
  using Fn = void (*)(const Stream&, ConstView a, ConstView b, View d, const GemmEpilogue& epilogue,
                      void* workspace);
};

/// Bytes of workspace that the GemmKernel of the same variant name needs. Reads shapes, strides,
/// dtypes and the kind of epilogue, never a value, so that it works for meta tensors too. May
/// depend on the number of CPU threads.
struct GemmWorkspaceKernel {
  static constexpr const char* kName = "gemm_workspace";
  using Fn = std::int64_t (*)(const ConstView& a, const ConstView& b, const ConstView& d,
                              const GemmEpilogue& epilogue);
};

/// Arguments of gemm besides the operands.
struct GemmOptions {
  float alpha = 1.0f;
  Tensor bias;          ///< [n] or undefined
  std::string variant;  ///< "" takes the context's choice (CPU: "openblas"); "exact" is the oracle
};

/// d = alpha · a·bᵀ (+ bias) for a [..., m, k] and b [..., n, k] with equal leading (batch)
/// dimensions.
///
/// Transposed views are welcome: dgrad passes w.transpose(0, 1), wgrad passes dyᵀ and xᵀ. k = 0
/// gives zeros (plus bias); m = 0 or n = 0 gives an empty result.
/// @returns [..., m, n] in `out_dtype`, contiguous.
/// @throws ValueError naming both shapes if k or the batch dimensions differ; TypeError on other
/// dtypes.
Tensor gemm(const Tensor& a, const Tensor& b, DType out_dtype, const GemmOptions& options = {});

/// As gemm, writing into `out` [..., m, n]; adds to its values if `accumulate`.
void gemm_into(const Tensor& a, const Tensor& b, const Tensor& out, bool accumulate,
               const GemmOptions& options = {});

}  // namespace kitchen::ops
