#pragma once

#include "kitchen/base/backend.h"
#include "kitchen/ops/gemm.h"

namespace kitchen::reference {

/// GemmKernel on top of OpenBLAS' sgemm.
///
/// The output is cut into tiles that depend on the shape alone, and each tile is one
/// single-threaded sgemm: results do not change with the number of threads. float32 operands are
/// used in place; others are widened into `workspace`, in the orientation that they have.
/// @throws NotImplementedError if a size or leading dimension exceeds 2^31 - 1.
void gemm_openblas(const Stream& stream, ConstView a, ConstView b, View d,
                   const ops::GemmEpilogue& epilogue, void* workspace);

std::int64_t gemm_openblas_workspace(const ConstView& a, const ConstView& b, const ConstView& d,
                                     const ops::GemmEpilogue& epilogue);

/// GemmKernel with fp64 sums, k ascending, and one rounding at the end: the oracle.
void gemm_exact(const Stream& stream, ConstView a, ConstView b, View d,
                const ops::GemmEpilogue& epilogue, void* workspace);

std::int64_t gemm_exact_workspace(const ConstView& a, const ConstView& b, const ConstView& d,
                                  const ops::GemmEpilogue& epilogue);

/// Adds the variants "openblas" (the default) and "exact" of GemmKernel and GemmWorkspaceKernel.
void register_gemm_kernels(Backend& backend);

}  // namespace kitchen::reference
