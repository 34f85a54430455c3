#pragma once

#include "kitchen/formats/float_specs.h"

#include <array>
#include <cstdint>

/// @file  all_specs.h
/// @brief Every format with three codes whose values are known from its published definition.

namespace kitchen::testing {

struct KnownCode {
  std::uint8_t code;
  float value;
};

struct FormatRow {
  formats::FloatSpec spec;
  std::array<KnownCode, 3> known;  ///< smallest positive, one, largest
};

inline constexpr std::array<FormatRow, 6> kAllSpecs{{
    {formats::kE4M3, {{{0x01, 0x1p-9f}, {0x38, 1.0f}, {0x7E, 448.0f}}}},
    {formats::kE5M2, {{{0x01, 0x1p-16f}, {0x3C, 1.0f}, {0x7B, 57344.0f}}}},
    {formats::kE2M1, {{{0x01, 0.5f}, {0x02, 1.0f}, {0x07, 6.0f}}}},
    {formats::kE2M3, {{{0x01, 0.125f}, {0x08, 1.0f}, {0x1F, 7.5f}}}},
    {formats::kE3M2, {{{0x01, 0.0625f}, {0x0C, 1.0f}, {0x1F, 28.0f}}}},
    {formats::kInt8, {{{0x01, 1.0f}, {0x81, -127.0f}, {0x7F, 127.0f}}}},
}};

}  // namespace kitchen::testing
