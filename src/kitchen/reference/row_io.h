#pragma once

#include "kitchen/base/math.h"
#include "kitchen/base/tensor_view.h"

#include <cstdint>

/// @file  row_io.h
/// @brief Rows of float32, bfloat16 or float16 in and out of fp32 (numerics.md S1.5).
///
/// Kernels compute in fp32 row buffers. The scalar conversions are free of branches, so that loops
/// over them vectorize; widening is exact, narrowing rounds to nearest even, NaN becomes 0x7FFF,
/// overflow Inf.

namespace kitchen::reference {

inline float bfloat16_to_float(std::uint16_t bits) {
  return float_from_bits(static_cast<std::uint32_t>(bits) << 16);
}

inline std::uint16_t float_to_bfloat16(float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const bool is_nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  return static_cast<std::uint16_t>(is_nan ? 0x7FFFu : rounded);
}

inline float float16_to_float(std::uint16_t half) {
  const std::uint32_t magnitude = half & 0x7FFFu;
  const std::uint32_t sign = (half & 0x8000u) * 65536u;
  // The exponent bias differs by 112; the product also normalises half subnormals.
  const std::uint32_t finite = bits_of(float_from_bits(magnitude << 13) * 0x1p112f);
  return float_from_bits(sign | finite | (magnitude >= 0x7C00u ? 0x7F800000u : 0u));
}

inline std::uint16_t float_to_float16(float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  const std::uint32_t normal = (magnitude + 0x0FFFu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
  // Below 2^-14 the fp32 addition rounds at the half subnormals' spacing, 2^-24.
  const std::uint32_t subnormal = bits_of(float_from_bits(magnitude) + 0.5f) - 0x3F000000u;
  std::uint32_t result = magnitude < 0x38800000u ? subnormal : normal;
  result = magnitude >= 0x47800000u ? 0x7C00u : result;
  result |= (bits >> 16) & 0x8000u;
  return static_cast<std::uint16_t>(magnitude > 0x7F800000u ? 0x7FFFu : result);
}

/// One struct a dtype for templates: `Storage` in memory, load and store between it and fp32.
struct Float32Io {
  using Storage = float;
  static float load(float value) { return value; }
  static float store(float value) { return value; }
};

struct Bfloat16Io {
  using Storage = std::uint16_t;
  static float load(std::uint16_t bits) { return bfloat16_to_float(bits); }
  static std::uint16_t store(float value) { return float_to_bfloat16(value); }
};

struct Float16Io {
  using Storage = std::uint16_t;
  static float load(std::uint16_t bits) { return float16_to_float(bits); }
  static std::uint16_t store(float value) { return float_to_float16(value); }
};

/// Calls `body(io)` with the struct above that fits `dtype`, which must be a high-precision dtype:
/// ops validate it before a kernel runs.
template <class Body>
void with_io(DType dtype, Body&& body) {
  if (dtype == DType::float32) {
    body(Float32Io{});
  } else if (dtype == DType::bfloat16) {
    body(Bfloat16Io{});
  } else {
    body(Float16Io{});
  }
}

/// out[i] = fp32 of the element `offset + i·stride` of `data`. Offsets and strides count elements.
void load_row(const void* data, DType dtype, std::int64_t offset, std::int64_t stride,
              std::int64_t count, float* out);

/// Inverse of load_row: rounds `row` to the dtype, once.
void store_row(const float* row, void* data, DType dtype, std::int64_t offset, std::int64_t stride,
               std::int64_t count);

/// Row `row` of a view of rank 2.
inline void load_row(const ConstView& view, std::int64_t row, float* out) {
  load_row(view.data, view.dtype, row * view.strides[0], view.strides[1], view.shape[1], out);
}

inline void store_row(const float* values, const View& view, std::int64_t row) {
  store_row(values, view.data, view.dtype, row * view.strides[0], view.strides[1], view.shape[1]);
}

/// The address of element `offset` of `data`.
inline const void* element_at(const void* data, DType dtype, std::int64_t offset) {
  return static_cast<const std::uint8_t*>(data) + offset * size_of(dtype);
}

inline void* element_at(void* data, DType dtype, std::int64_t offset) {
  return static_cast<std::uint8_t*>(data) + offset * size_of(dtype);
}

}  // namespace kitchen::reference
