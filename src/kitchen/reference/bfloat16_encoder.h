#pragma once

#include "kitchen/formats/float_spec.h"

#include <cstdint>

namespace kitchen::reference {

/// codes[i] = encode(values[i] · scale) of bfloat16 values, saturating: the row encoder of
/// matrix_tile.h without fp32 values in between.
using EncodeBfloat16Row = void (*)(const std::uint16_t* values, float scale, std::uint8_t* codes,
                                   std::int64_t n);

/// The loop for a format, or nullptr where there is none.
EncodeBfloat16Row bfloat16_row_encoder(const formats::FloatSpec& spec);

}  // namespace kitchen::reference
