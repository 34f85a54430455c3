#pragma once

#include "kitchen/ops/gemm.h"

namespace kitchen::cuda {

/// Rungs of the ladder, as variants of GemmKernel. None needs workspace.
void gemm_naive(const Stream& stream, ConstView a, ConstView b, View d,
                const ops::GemmEpilogue& epilogue, void* workspace);
void gemm_tiled(const Stream& stream, ConstView a, ConstView b, View d,
                const ops::GemmEpilogue& epilogue, void* workspace);

}  // namespace kitchen::cuda
