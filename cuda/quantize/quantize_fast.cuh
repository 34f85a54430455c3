#pragma once

#include "kitchen/base/stream.h"

#include "cuda/quantize/scale_block.cuh"

/// @file  quantize_fast.cuh
/// @brief Kernels for the shapes that matter. Each returns false, without a launch, where the job
/// is not one of its own: quantize_blocks.cu takes everything.

namespace kitchen::cuda {

bool quantize_lines(const Stream& stream, const BlockJob& job);
bool quantize_columns(const Stream& stream, const BlockJob& job);
bool quantize_tiles(const Stream& stream, const BlockJob& job);

}  // namespace kitchen::cuda
