#pragma once

#include "kitchen/config/recipe_config.h"

#include <string>
#include <vector>

namespace kitchen {

/// Checks that every rule names a configuration that exists.
/// @throws KeyError naming the rule, the name, the nearest and all known names.
void check_recipe_references(const RecipeConfig& recipe);

/// A warning for each glob rule that can never be the first to match, since one earlier rule is
/// proven to take all of its layers: "matcher a can never match: ...".
std::vector<std::string> unreachable_matchers(const RecipeConfig& recipe);

/// A warning for each configuration that no rule names.
std::vector<std::string> unused_configs(const RecipeConfig& recipe);

}  // namespace kitchen
