#pragma once

#include "kitchen/base/tensor_view.h"
#include "kitchen/formats/codec.h"

#include <cstdint>

/// @file  element_io.cuh
/// @brief Elements of float32, bfloat16 or float16 in and out of fp32 (numerics.md S1.5).
///
/// The dtype is a run-time value that is equal for all threads: the branch is not divergent, and
/// one compiled kernel serves all dtypes. A pack of 8 neighbours is one or two 16-byte accesses.

namespace kitchen::cuda {

/// A buffer and its element type, by value into a kernel.
struct Elements {
  void* data;
  DType dtype;
};

struct ConstElements {
  const void* data;
  DType dtype;
};

inline Elements elements_of(const View& view) {
  return {view.data, view.dtype};
}
inline ConstElements elements_of(const ConstView& view) {
  return {view.data, view.dtype};
}

inline constexpr int kPack = 8;

inline bool is_aligned16(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0;
}

__device__ inline float load_element(ConstElements from, std::int64_t index) {
  if (from.dtype == DType::float32) return static_cast<const float*>(from.data)[index];
  const std::uint16_t bits = static_cast<const std::uint16_t*>(from.data)[index];
  return from.dtype == DType::bfloat16 ? formats::bf16_to_float(bits)
                                       : formats::fp16_to_float(bits);
}

/// Rounds to nearest even, once.
__device__ inline void store_element(Elements to, std::int64_t index, float value) {
  if (to.dtype == DType::float32) {
    static_cast<float*>(to.data)[index] = value;
  } else {
    static_cast<std::uint16_t*>(to.data)[index] =
        to.dtype == DType::bfloat16 ? formats::float_to_bf16(value) : formats::float_to_fp16(value);
  }
}

/// `value` rounded to `dtype` and widened again: what a store and a load do.
__device__ inline float round_to(DType dtype, float value) {
  if (dtype == DType::bfloat16) return formats::bf16_to_float(formats::float_to_bf16(value));
  if (dtype == DType::float16) return formats::fp16_to_float(formats::float_to_fp16(value));
  return value;
}

/// kPack elements from `index` on, whose address is 16-byte aligned.
__device__ inline void load_pack(ConstElements from, std::int64_t index, float (&values)[kPack]) {
  if (from.dtype == DType::float32) {
    const auto* at = reinterpret_cast<const float4*>(static_cast<const float*>(from.data) + index);
    const float4 low = at[0];
    const float4 high = at[1];
    values[0] = low.x, values[1] = low.y, values[2] = low.z, values[3] = low.w;
    values[4] = high.x, values[5] = high.y, values[6] = high.z, values[7] = high.w;
    return;
  }
  const uint4 words =
      *reinterpret_cast<const uint4*>(static_cast<const std::uint16_t*>(from.data) + index);
  const std::uint32_t pairs[4] = {words.x, words.y, words.z, words.w};
  for (int i = 0; i < kPack; ++i) {
    const auto bits = static_cast<std::uint16_t>(pairs[i / 2] >> (i % 2 * 16));
    values[i] =
        from.dtype == DType::bfloat16 ? formats::bf16_to_float(bits) : formats::fp16_to_float(bits);
  }
}

__device__ inline void store_pack(Elements to, std::int64_t index, const float (&values)[kPack]) {
  if (to.dtype == DType::float32) {
    auto* at = reinterpret_cast<float4*>(static_cast<float*>(to.data) + index);
    at[0] = make_float4(values[0], values[1], values[2], values[3]);
    at[1] = make_float4(values[4], values[5], values[6], values[7]);
    return;
  }
  std::uint32_t pairs[4] = {};
  for (int i = 0; i < kPack; ++i) {
    const std::uint32_t bits = to.dtype == DType::bfloat16 ? formats::float_to_bf16(values[i])
                                                           : formats::float_to_fp16(values[i]);
    pairs[i / 2] |= bits << (i % 2 * 16);
  }
  *reinterpret_cast<uint4*>(static_cast<std::uint16_t*>(to.data) + index) =
      make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
}

/// kPack elements from `index` on, `count` of which exist; the others read as 0.
__device__ inline void load_up_to(ConstElements from, std::int64_t index, std::int64_t count,
                                  bool aligned, float (&values)[kPack]) {
  if (aligned && count >= kPack) return load_pack(from, index, values);
  for (int i = 0; i < kPack; ++i) values[i] = i < count ? load_element(from, index + i) : 0.0f;
}

__device__ inline void store_up_to(Elements to, std::int64_t index, std::int64_t count,
                                   bool aligned, const float (&values)[kPack]) {
  if (aligned && count >= kPack) return store_pack(to, index, values);
  for (int i = 0; i < kPack; ++i) {
    if (i < count) store_element(to, index + i, values[i]);
  }
}

}  // namespace kitchen::cuda
