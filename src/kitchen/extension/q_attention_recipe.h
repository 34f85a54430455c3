#pragma once

#include "kitchen/extension/extension_config_parsers.h"

namespace kitchen {

inline constexpr const char* kQAttentionRecipeType = "QAttentionRecipe";

/// Ext: `{kitchen_config_type: QAttentionRecipe, recipe: fp8_cs}`, or an explicit description under
/// `recipe`:
///
///     recipe: {qk: {format: e4m3, scaling: mx32}, pv: {...}, do: {...}, ds: {...}, backend:
///     emulation}
///
/// qk quantizes Q and K, pv P and V, ds the gradient of the scores, do that of the output; what is
/// left out is not quantized. A description with the key `softmax` (base_2 or natural) or `p_scale`
/// describes flash attention instead, whose fp8 operands take `scaling: tensor_current` (one scale
/// a head). A name is looked up among the recipes of unfused attention, then among those of flash
/// attention.
/// @throws KeyError, TypeError, ValueError as parse_q_linear_recipe.
ConfigParts parse_q_attention_recipe(const ConfigDict& dict);

}  // namespace kitchen
