#pragma once

#include "kitchen/formats/float_spec.h"

#include <array>

/// @file  float_specs.h
/// @brief The known formats. A new one is one type and one constant here, one row in all_formats,
/// and one
///        row in tests/formats/all_specs.h.
///
/// Each format exists as a type, for templates and for device code, which must not refer to a
/// constant of namespace scope, and as a constant made of it. Columns: name, exponent bits,
/// mantissa bits, bias, largest finite code, NaN code, infinity code, exponent of the largest
/// value.

namespace kitchen::formats {

/// Eight bits without infinities ("fn"): largest value 448.
struct E4M3 {
  KITCHEN_HOST_DEVICE static constexpr FloatSpec spec() {
    return {"e4m3", 4, 3, 7, 0x7E, 0x7F, -1, 8};
  }
};
/// Eight bits with infinities: largest finite value 57344.
struct E5M2 {
  KITCHEN_HOST_DEVICE static constexpr FloatSpec spec() {
    return {"e5m2", 5, 2, 15, 0x7B, 0x7F, 0x7C, 15};
  }
};
/// Four bits, neither NaN nor infinity: 0, 0.5, 1, 1.5, 2, 3, 4, 6.
struct E2M1 {
  KITCHEN_HOST_DEVICE static constexpr FloatSpec spec() {
    return {"e2m1", 2, 1, 1, 0x07, -1, -1, 2};
  }
};
/// Six bits: largest value 7.5.
struct E2M3 {
  KITCHEN_HOST_DEVICE static constexpr FloatSpec spec() {
    return {"e2m3", 2, 3, 1, 0x1F, -1, -1, 2};
  }
};
/// Six bits: largest value 28.
struct E3M2 {
  KITCHEN_HOST_DEVICE static constexpr FloatSpec spec() {
    return {"e3m2", 3, 2, 3, 0x1F, -1, -1, 4};
  }
};
/// Signed integers -127..127, two's complement.
struct Int8 {
  KITCHEN_HOST_DEVICE static constexpr FloatSpec spec() {
    return {"int8", 0, 7, 0, 0x7F, -1, -1, 6};
  }
};
/// IEEE binary16: the codec behind float_to_fp16 and fp16_to_float.
struct Float16 {
  KITCHEN_HOST_DEVICE static constexpr FloatSpec spec() {
    return {"float16", 5, 10, 15, 0x7BFF, 0x7FFF, 0x7C00, 15};
  }
};

inline constexpr FloatSpec kE4M3 = E4M3::spec();
inline constexpr FloatSpec kE5M2 = E5M2::spec();
inline constexpr FloatSpec kE2M1 = E2M1::spec();
inline constexpr FloatSpec kE2M3 = E2M3::spec();
inline constexpr FloatSpec kE3M2 = E3M2::spec();
inline constexpr FloatSpec kInt8 = Int8::spec();
inline constexpr FloatSpec kFloat16 = Float16::spec();

/// The formats that a matrix can be quantized to.
inline constexpr std::array<FloatSpec, 6> all_formats() {
  return {kE4M3, kE5M2, kE2M1, kE2M3, kE3M2, kInt8};
}

}  // namespace kitchen::formats
