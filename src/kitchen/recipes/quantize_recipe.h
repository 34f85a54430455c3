#pragma once

#include "kitchen/base/enum_names.h"

#include <string>
#include <string_view>

namespace kitchen {

/// Predefined linear recipes; the text is the enumerator's own (numerics.md S6).
enum class QuantizeRecipe {
  BF16,
  FP8_CS,
  FP8_CS_POW2,
  FP8_CS_E4M3,
  FP8_CS_E4M3_POW2,
  FP8_CS_BF16_WGRAD,
  FP8_ROWWISE,
  FP8_DELAYED,
  FP8_BLOCK,
  FP8_BLOCK_FP32,
  FP8_BLOCK_1D,
  FP8_BLOCK_HYBRID,
  FP8_BLOCK_DEEPGEMM,
  MXFP8,
  MXFP8_EMULATION,
  MXFP8_HYBRID,
  MXFP4,
  NVFP4,
  NVFP4_2D,
  NVFP4_RHT,
  NVFP4_RHT_2D,
  NVFP4_RHT_2D_SR,
  INT8_ROW,
};

std::string to_string(QuantizeRecipe recipe);
template <>
QuantizeRecipe from_string<QuantizeRecipe>(std::string_view text);

}  // namespace kitchen
