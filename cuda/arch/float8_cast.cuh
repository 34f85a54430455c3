#pragma once

#include "kitchen/formats/codec.h"

#include <cstdint>

/// @file  float8_cast.cuh
/// @brief Two numbers to two codes by one instruction where the device has it (compute capability
/// 8.9), else by the integer codec. Both give the same codes for every fp32 number, NaN included.

namespace kitchen::cuda {

/// Codes of `low` and `high` in the lower and the upper byte: saturating, ties to even.
template <class Values>
__device__ inline std::uint32_t encode_pair(float low, float high) {
  return formats::encode(low, Values::spec()) | formats::encode(high, Values::spec()) << 8;
}

#if __CUDA_ARCH__ >= 890

template <>
__device__ inline std::uint32_t encode_pair<formats::E4M3>(float low, float high) {
  std::uint16_t codes;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(high), "f"(low));
  return codes;
}

template <>
__device__ inline std::uint32_t encode_pair<formats::E5M2>(float low, float high) {
  std::uint16_t codes;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(high), "f"(low));
  return codes;
}

#endif

}  // namespace kitchen::cuda
