#pragma once

#include "kitchen/extension/extension_config_parsers.h"

namespace kitchen {

inline constexpr const char* kQLinearRecipeType = "QLinearRecipe";

/// Ext: `{kitchen_config_type: QLinearRecipe, recipe: fp8_block}`, or an explicit description under
/// `recipe`:
///
///     recipe:
///       name: my_recipe                                # optional label
///       x:  {format: e4m3, scaling: block1x128, pow2: true}
///       w:  {format: e4m3, scaling: block128x128, pow2: true}
///       dy: {format: e5m2, scaling: block1x128, pow2: true}
///       fprop: {quantized: true, accumulate: fast}     # dgrad and wgrad alike
///       backend: auto
///
/// An operand that is left out is not quantized; a product that is left out is quantized if both of
/// its operands are, with fp32 accumulation. `backend` holds for all three products.
/// @throws KeyError for a missing or unknown key, TypeError for a value of the wrong type,
/// ValueError for an
///         unknown name and for what validate_q_linear_params refuses.
ConfigParts parse_q_linear_recipe(const ConfigDict& dict);

/// The explicit description alone.
QLinearParams parse_q_linear_description(const ConfigDict& description);

}  // namespace kitchen
