#pragma once

#include "kitchen/config/recipe_config.h"

#include <string>
#include <vector>

namespace kitchen {

/// What `validate_recipe` found in a recipe that is right.
struct RecipeReport {
  std::vector<std::string> warnings;
  std::string text;  ///< the rules in order and what each configuration means
};

/// The rules in order and what each configuration means. @throws what a configuration's parser throws.
std::string describe_recipe(const RecipeConfig& recipe);

/// Rules that can never match, and configurations that no rule names.
std::vector<std::string> recipe_warnings(const RecipeConfig& recipe);

/// Checks a recipe before any work: it has rules and configurations, every rule names a
/// configuration that exists, and every configuration parses, whether a layer will ever ask for it
/// or not. Logs the warnings: rules that can never match, configurations that no rule names.
/// @throws KeyError, ValueError, TypeError with file and line; NotImplementedError for a scaling that
///         no kernel follows.
RecipeReport validate_recipe(const RecipeConfig& recipe);

}  // namespace kitchen
