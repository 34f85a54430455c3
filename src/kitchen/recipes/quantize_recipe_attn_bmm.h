#pragma once

#include "kitchen/base/enum_names.h"

#include <string>
#include <string_view>

namespace kitchen {

/// Predefined recipes of unfused attention; the text is the enumerator's own (numerics.md S7).
enum class QuantizeRecipeAttnBMM { BF16, FP8_CS, MXFP8_EMULATION };

std::string to_string(QuantizeRecipeAttnBMM recipe);
template <>
QuantizeRecipeAttnBMM from_string<QuantizeRecipeAttnBMM>(std::string_view text);

}  // namespace kitchen
