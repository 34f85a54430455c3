#pragma once

#include "kitchen/base/backend.h"

namespace kitchen::cuda {

/// Adds every CUDA kernel to `backend`: explicit, one line a group, no static initialisers.
void register_cuda_kernels(Backend& backend);

void register_memory_kernels(Backend& backend);       ///< base/memory_kernels.h
void register_elementwise_kernels(Backend& backend);  ///< ops/elementwise.h, without the sums
void register_quantize_kernels(Backend& backend);     ///< ops/quantize.h

}  // namespace kitchen::cuda
