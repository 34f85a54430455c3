#pragma once

#include "kitchen/config/recipe_config.h"

#include <string>
#include <vector>

namespace kitchen {

/// Which rule of a recipe takes one layer.
struct LayerMatch {
  std::string module_path;
  std::string matcher;  ///< the rule's label, or its repr if it has none; empty if no rule matches
  std::string config_key;  ///< empty if no rule matches
};

/// One entry a module path, in the order given. Looks nothing up in `configs`.
std::vector<LayerMatch> match_layers(const RecipeConfig& recipe,
                                     const std::vector<std::string>& module_paths);

/// One line a layer, in columns: path, rule, configuration.
std::string to_string(const std::vector<LayerMatch>& matches);

}  // namespace kitchen
