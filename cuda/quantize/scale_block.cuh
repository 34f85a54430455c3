#pragma once

#include "kitchen/formats/scale_rule.h"

#include "cuda/base/launch.h"
#include "cuda/quantize/quantize_job.cuh"

#include <cstdint>

/// @file  scale_block.cuh
/// @brief One quantization as its kernels see it, and the scale of a block from its amax.

namespace kitchen::cuda {

struct BlockJob {
  MatrixSource source;
  const float* matrix_amax;  ///< [slices] or null
  const float* given_scale;  ///< [slices] or null
  std::uint8_t* codes;
  void* scale_inv;
  std::int64_t scale_rows, scale_cols;  ///< of one slice
  std::int64_t block_rows, block_cols;  ///< elements of a scale block
  std::int64_t blocks_down, blocks_across;
  formats::FloatSpec format;
  formats::ScaleRule rule;
  float eps, largest_input;
  ops::RoundingStream rounding;
  bool is_per_tensor, has_byte_scales, repeats_scale, stochastic;
  int team;  ///< threads that share a block: a power of two up to 32, or kThreads
};

/// The largest over all threads of a block of kThreads, valid in each.
__device__ inline AmaxBits reduce_block(AmaxBits amax) {
  __shared__ AmaxBits of_warps[kThreads / 32];
  amax = reduce_lanes(amax, 32);
  __syncthreads();  // the values of a former call have been read
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = amax;
  __syncthreads();
  for (const AmaxBits& of_warp : of_warps) amax.merge(of_warp);
  return amax;
}

__device__ inline formats::BlockScale scale_of(const BlockJob& job, std::int64_t slice,
                                               const AmaxBits& amax) {
  if (job.given_scale != nullptr) {
    const float scale = job.given_scale[slice];
    return {scale, 1.0f / scale, 0};
  }
  const float whole = job.matrix_amax != nullptr ? job.matrix_amax[slice] : 0.0f;
  return formats::block_scale(job.rule, job.format, job.is_per_tensor ? whole : amax.value(),
                              !job.is_per_tensor && amax.has_nan(), job.eps, job.largest_input,
                              whole);
}

__device__ inline void put_scale(const BlockJob& job, std::int64_t at,
                                 const formats::BlockScale& scale) {
  if (job.has_byte_scales) {
    static_cast<std::uint8_t*>(job.scale_inv)[at] = static_cast<std::uint8_t>(scale.code);
  } else {
    static_cast<float*>(job.scale_inv)[at] = scale.scale_inv;
  }
}

}  // namespace kitchen::cuda
