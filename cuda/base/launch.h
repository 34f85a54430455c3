#pragma once

#include "kitchen/base/stream.h"

#include "cuda/base/cuda_error.h"

#include <cstdint>

/// @file  launch.h
/// @brief What every host wrapper needs: the native stream, the number of blocks, the check.

namespace kitchen::cuda {

inline constexpr int kThreads =
    256;  ///< threads of a block, unless a kernel's page says another number

inline cudaStream_t native(const Stream& stream) {
  return static_cast<cudaStream_t>(stream.handle);
}

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// Blocks that give each of `items` a thread, but at most `max_blocks`: kernels stride over the
/// rest.
inline unsigned blocks_for(std::int64_t items, std::int64_t threads = kThreads,
                           std::int64_t max_blocks = 132 * 16) {
  const std::int64_t blocks = ceil_div(items, threads);
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks > max_blocks ? max_blocks : blocks);
}

}  // namespace kitchen::cuda
