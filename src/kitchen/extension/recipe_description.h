#pragma once

#include "kitchen/config/config_value.h"
#include "kitchen/recipes/matmul_params.h"
#include "kitchen/recipes/quantizer_params.h"

#include <string>

/// @file  recipe_description.h
/// @brief Parts that explicit linear and attention descriptions share.

namespace kitchen::extension {

/// The operand under `key`; not quantized if absent. Unknown keys are errors.
QuantizerParams read_operand(const ConfigDict& description, const std::string& key,
                             const std::string& subject);

/// The enumerator named under `key`, or `fallback`. @throws ValueError with file and line.
template <class E>
E read_enum(const ConfigDict& dict, const std::string& key, E fallback);

/// The value under `recipe`, after the keys were checked: exactly `kitchen_config_type` and
/// `recipe`.
/// @throws KeyError "Missing required keys" / "Unexpected keys in config", TypeError if it is
/// neither a string
///         nor a mapping.
const ConfigValue& recipe_value(const ConfigDict& dict);

}  // namespace kitchen::extension
