#pragma once

#include "cuda/arch/float8_cast.cuh"
#include "cuda/quantize/quantize_job.cuh"

/// @file  encode_pack.cuh
/// @brief What the fast quantize kernels do with kPack neighbours in registers.

namespace kitchen::cuda {

__device__ inline std::uint32_t encode_two(const AnyFormat& format, float low, float high) {
  return formats::encode(low, format.spec()) | formats::encode(high, format.spec()) << 8;
}

template <class Values>
__device__ std::uint32_t encode_two(const FixedFormat<Values>& /*format*/, float low, float high) {
  return encode_pair<Values>(low, high);
}

/// The codes of kPack values times `scale`, the first in the lowest byte.
template <class Format>
__device__ uint2 encode_pack(const Format& format, const float* values, float scale) {
  std::uint32_t pairs[kPack / 2];
#pragma unroll
  for (int i = 0; i < kPack / 2; ++i) {
    pairs[i] = encode_two(format, values[2 * i] * scale, values[2 * i + 1] * scale);
  }
  return make_uint2(pairs[0] | pairs[1] << 16, pairs[2] | pairs[3] << 16);
}

/// Adds several values at once: the second look is for the rare NaN.
template <int kCount>
__device__ void add_values(AmaxBits& amax, const float (&values)[kCount]) {
  unsigned any = 0;
#pragma unroll
  for (int i = 0; i < kCount; ++i) any = max(any, bits_of(values[i]) & 0x7FFFFFFFu);
  amax.any = max(amax.any, any);
  if (any <= formats::kFloatInfBits) {
    amax.number = max(amax.number, any);
    return;
  }
  for (const float value : values) amax.add(value);
}

}  // namespace kitchen::cuda
