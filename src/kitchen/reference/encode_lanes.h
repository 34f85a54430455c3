#pragma once

#include "kitchen/formats/float_spec.h"
#include "kitchen/formats/float_specs.h"

#include <cstdint>
#include <cstring>

/// @file  encode_lanes.h
/// @brief bfloat16 to codes, 32 elements at a time, in the compiler's vector types.
///
/// Loops over single elements leave half of the speed behind: g++ 12 turns their minimum into
/// compare and blend, and narrows every intermediate value from 32 to 8 bits by itself. Here a
/// 32-bit lane holds two neighbours from the load on, and only finished codes are narrowed.

namespace kitchen::reference {

/// Elements of one step: two vectors of eight lanes of two.
inline constexpr std::int64_t kEncodeStep = 32;

using FloatLanes [[gnu::vector_size(32)]] = float;
using SignedLanes [[gnu::vector_size(32)]] = std::int32_t;
using UnsignedLanes [[gnu::vector_size(32)]] = std::uint32_t;
using HalfLanes [[gnu::vector_size(32)]] = std::uint16_t;

/// Multipliers of 16 neighbouring elements, those at even and at odd places, times lift<Format>().
struct LaneScales {
  FloatLanes even;
  FloatLanes odd;
};

/// The power of two that makes the constant between exponent field and code a multiple of the code
/// range, so that it need not be subtracted.
template <class Format>
constexpr int lift_exponent() {
  constexpr formats::FloatSpec kSpec = Format::spec();
  constexpr int kFields = 1 << kSpec.exponent_bits;
  return (kFields - (151 - kSpec.bias - kSpec.mantissa_bits) % kFields) % kFields;
}

template <class Format>
constexpr float lift() {
  return static_cast<float>(std::uint64_t{1} << lift_exponent<Format>());
}

/// Whether encode_step may multiply by `scale`: positive, so that it keeps signs, and so far below
/// the largest float that neither lift makes it infinite.
inline bool is_plain_scale(float scale) {
  return scale > 0.0f && scale <= 0x1p90f;
}

template <class Format>
LaneScales same_scale(float scale) {
  const FloatLanes lifted = FloatLanes{} + scale * lift<Format>();
  return {lifted, lifted};
}

/// The saturated code of size / lift >= 0, not NaN, in the low bits of each lane; the bits above
/// them are arbitrary.
///
/// Adding the power of two whose spacing is that of the format rounds to nearest even; the sum's
/// mantissa then counts spacings, its exponent says which spacing it was. Below the smallest
/// normal number the spacing stays the same.
template <class Format>
UnsignedLanes code_of_size(FloatLanes size) {
  constexpr formats::FloatSpec kSpec = Format::spec();
  constexpr int kShift = 23 - kSpec.mantissa_bits;
  constexpr int kLift = lift_exponent<Format>();
  constexpr std::int32_t kLargest = (kSpec.max_code << kShift) + ((127 - kSpec.bias + kLift) << 23);
  constexpr std::int32_t kSmallestNormal = (128 - kSpec.bias + kLift) << 23;
  const auto bits = reinterpret_cast<SignedLanes>(size);
  const SignedLanes clamped = bits > kLargest ? SignedLanes{} + kLargest : bits;
  const SignedLanes field = clamped & 0x7F800000;
  const SignedLanes exponent = field > kSmallestNormal ? field : SignedLanes{} + kSmallestNormal;
  const auto unit = reinterpret_cast<FloatLanes>(exponent + (kShift << 23));
  const auto sum = reinterpret_cast<UnsignedLanes>(reinterpret_cast<FloatLanes>(clamped) + unit);
  return (sum >> kShift) + sum;
}

/// The codes of 16 elements, two in the low half of each lane; the high half is arbitrary.
template <class Format>
UnsignedLanes encode_pairs(const std::uint16_t* values, const LaneScales& scales) {
  constexpr int kBits = Format::spec().bits();
  constexpr std::uint32_t kSize = (1u << (kBits - 1)) - 1u;
  UnsignedLanes pair;
  std::memcpy(&pair, values, sizeof pair);
  const UnsignedLanes sizes = pair & 0x7FFF7FFFu;
  const UnsignedLanes signs = pair & 0x80008000u;
  const auto even = reinterpret_cast<FloatLanes>(sizes << 16) * scales.even;
  const auto odd = reinterpret_cast<FloatLanes>(sizes & 0xFFFF0000u) * scales.odd;
  return (code_of_size<Format>(even) & kSize) | ((code_of_size<Format>(odd) << 8) & (kSize << 8)) |
         (signs >> (24 - kBits)) | ((signs & 0x8000u) >> (16 - kBits));
}

/// codes[i] = encode(values[i] · scale of i) of 32 bfloat16 elements that hold no NaN; `low` are
/// the scales of the first 16, `high` those of the others.
template <class Format>
void encode_step(const std::uint16_t* values, const LaneScales& low, const LaneScales& high,
                 std::uint8_t* codes) {
  const UnsignedLanes first = encode_pairs<Format>(values, low);
  const UnsignedLanes second = encode_pairs<Format>(values + 16, high);
  const auto mixed = reinterpret_cast<HalfLanes>((first & 0xFFFFu) | (second << 16));
  const HalfLanes ordered =
      __builtin_shufflevector(mixed, mixed, 0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
  std::memcpy(codes, &ordered, sizeof ordered);
}

}  // namespace kitchen::reference
