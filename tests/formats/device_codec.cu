/// @file  device_codec.cu
/// @brief Compiled, never run: the codec and scale headers must be legal device code.

#include "kitchen/formats/codec.h"
#include "kitchen/formats/packing.h"
#include "kitchen/formats/scale_rule.h"

namespace kitchen::formats {

template <class Format>
__global__ void round_trip_kernel(const float* x, float* y, std::uint32_t* words, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  const std::uint32_t code = encode(x[i], Format::spec());
  y[i] = decode(code, Format::spec()) * bf16_to_float(float_to_bf16(x[i])) *
         fp16_to_float(float_to_fp16(x[i]));
  words[i] = encode_e2m1_stochastic(x[i], words[i]);
}

__global__ void scale_kernel(FloatSpec format, ScaleRule rule, const float* amax, float* scale,
                             std::uint32_t* codes, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  const BlockScale result = block_scale(rule, format, amax[i], false, 0.0f, kFloatMax, 1.0f);
  scale[i] = result.scale * result.scale_inv * nvfp4_scale_inv(result.code, amax[i]);
  codes[swizzled_offset_128x4(i, 0, 4)] = result.code;
}

template __global__ void round_trip_kernel<E4M3>(const float*, float*, std::uint32_t*, int);
template __global__ void round_trip_kernel<E5M2>(const float*, float*, std::uint32_t*, int);
template __global__ void round_trip_kernel<E2M1>(const float*, float*, std::uint32_t*, int);
template __global__ void round_trip_kernel<E2M3>(const float*, float*, std::uint32_t*, int);
template __global__ void round_trip_kernel<E3M2>(const float*, float*, std::uint32_t*, int);

}  // namespace kitchen::formats
