#include "kitchen/recipes/quantize_recipe.h"

namespace kitchen {

namespace {

constexpr std::array<EnumName<QuantizeRecipe>, 23> kNames = {{
    {QuantizeRecipe::BF16, "BF16"},
    {QuantizeRecipe::FP8_CS, "FP8_CS"},
    {QuantizeRecipe::FP8_CS_POW2, "FP8_CS_POW2"},
    {QuantizeRecipe::FP8_CS_E4M3, "FP8_CS_E4M3"},
    {QuantizeRecipe::FP8_CS_E4M3_POW2, "FP8_CS_E4M3_POW2"},
    {QuantizeRecipe::FP8_CS_BF16_WGRAD, "FP8_CS_BF16_WGRAD"},
    {QuantizeRecipe::FP8_ROWWISE, "FP8_ROWWISE"},
    {QuantizeRecipe::FP8_DELAYED, "FP8_DELAYED"},
    {QuantizeRecipe::FP8_BLOCK, "FP8_BLOCK"},
    {QuantizeRecipe::FP8_BLOCK_FP32, "FP8_BLOCK_FP32"},
    {QuantizeRecipe::FP8_BLOCK_1D, "FP8_BLOCK_1D"},
    {QuantizeRecipe::FP8_BLOCK_HYBRID, "FP8_BLOCK_HYBRID"},
    {QuantizeRecipe::FP8_BLOCK_DEEPGEMM, "FP8_BLOCK_DEEPGEMM"},
    {QuantizeRecipe::MXFP8, "MXFP8"},
    {QuantizeRecipe::MXFP8_EMULATION, "MXFP8_EMULATION"},
    {QuantizeRecipe::MXFP8_HYBRID, "MXFP8_HYBRID"},
    {QuantizeRecipe::MXFP4, "MXFP4"},
    {QuantizeRecipe::NVFP4, "NVFP4"},
    {QuantizeRecipe::NVFP4_2D, "NVFP4_2D"},
    {QuantizeRecipe::NVFP4_RHT, "NVFP4_RHT"},
    {QuantizeRecipe::NVFP4_RHT_2D, "NVFP4_RHT_2D"},
    {QuantizeRecipe::NVFP4_RHT_2D_SR, "NVFP4_RHT_2D_SR"},
    {QuantizeRecipe::INT8_ROW, "INT8_ROW"},
}};

}  // namespace

std::string to_string(QuantizeRecipe recipe) {
  return enum_to_string(kNames, recipe);
}

template <>
QuantizeRecipe from_string<QuantizeRecipe>(std::string_view text) {
  return enum_from_string(kNames, "QuantizeRecipe", text);
}

}  // namespace kitchen
