#include "kitchen/recipes/quantize_recipe_attn_bmm.h"

namespace kitchen {

namespace {

constexpr std::array<EnumName<QuantizeRecipeAttnBMM>, 3> kNames = {{
    {QuantizeRecipeAttnBMM::BF16, "BF16"},
    {QuantizeRecipeAttnBMM::FP8_CS, "FP8_CS"},
    {QuantizeRecipeAttnBMM::MXFP8_EMULATION, "MXFP8_EMULATION"},
}};

}  // namespace

std::string to_string(QuantizeRecipeAttnBMM recipe) {
  return enum_to_string(kNames, recipe);
}

template <>
QuantizeRecipeAttnBMM from_string<QuantizeRecipeAttnBMM>(std::string_view text) {
  return enum_from_string(kNames, "QuantizeRecipeAttnBMM", text);
}

}  // namespace kitchen
