#pragma once

#include "kitchen/config/config_value.h"
#include "kitchen/extension/kitchen_config_type.h"

#include <set>
#include <string>

/// @file  config_schema_checks.h
/// @brief The checks that all configuration schemas share, in the order of their contract.

namespace kitchen::extension {

/// Steps 1 to 5 of parsing: keys, then the type. Returns the type, which is `own`.
/// @throws KeyError "Missing required keys" or "Unexpected keys in config" (missing is told first),
/// ValueError
///         "Unsupported config type" or "Parsing config dict of incorrect type".
KitchenConfigType check_schema_dict(const ConfigDict& dict, const std::set<std::string>& expected,
                                    KitchenConfigType own);

/// @throws ValueError "Unsupported config type" for an unknown text or a value that is no string.
KitchenConfigType config_type_of(const ConfigValue& value);

/// @throws KeyError if a key of `dict` is missing or unexpected, with the lines and the nearest
/// names.
void check_schema_keys(const ConfigDict& dict, const std::set<std::string>& expected);

/// @throws TypeError "kitchen_config_type must be <own>" if `given` differs.
void check_own_type(KitchenConfigType given, KitchenConfigType own);

/// @throws ValueError "recipe_idx must be a positive integer" for anything but an integer above 0.
std::int64_t checked_recipe_idx(const ConfigValue& value);

/// "QLinearParams, QAttentionParams, ..., QLinearRecipe, QAttentionRecipe".
std::vector<std::string> known_config_types();

/// The error for a type that nobody parses. `value` is what stands under the type key.
[[noreturn]] void refuse_config_type(const ConfigValue& value);

}  // namespace kitchen::extension
