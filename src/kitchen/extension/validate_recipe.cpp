#include "kitchen/extension/validate_recipe.h"

#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/config/recipe_references.h"
#include "kitchen/extension/kitchen_quantization_params.h"

#include <fmt/format.h>

namespace kitchen {

namespace {

/// Parses the configuration as a layer would; the module path is only for messages.
std::string explain_config(const std::string& name, const ConfigDict& config) {
  const auto params = KitchenQuantizationParams::parse_from_config(
      QuantizationConfig(config, MatchContext{"", std::nullopt}, name));
  std::string out = "config " + name + ": " + config.repr() + "\n";
  if (params.qlinear_params) out += "  linear: " + params.qlinear_params->repr() + "\n";
  if (params.qattention_params) out += "  attention: " + params.qattention_params->repr() + "\n";
  if (params.qfa_params) out += "  flash attention: " + params.qfa_params->repr() + "\n";
  return out;
}

}  // namespace

std::string describe_recipe(const RecipeConfig& recipe) {
  std::string text;
  for (const auto& matcher : recipe.matchers()) text += matcher->repr() + "\n";
  for (const auto& [name, config] : recipe.configs()) text += explain_config(name, config);
  return text;
}

std::vector<std::string> recipe_warnings(const RecipeConfig& recipe) {
  std::vector<std::string> warnings = unreachable_matchers(recipe);
  for (std::string& warning : unused_configs(recipe)) warnings.push_back(std::move(warning));
  return warnings;
}

RecipeReport validate_recipe(const RecipeConfig& recipe) {
  if (recipe.matchers().empty() || recipe.configs().empty()) {
    throw ValueError(fmt::format(
        "the recipe has no configs/matchers: {} configs and {} enabled matchers, so that no layer "
        "gets a configuration; a matcher needs `enabled: true`",
        recipe.configs().size(), recipe.matchers().size()));
  }
  check_recipe_references(recipe);
  RecipeReport report{recipe_warnings(recipe), describe_recipe(recipe)};
  for (const std::string& warning : report.warnings) logger().warning(warning);
  return report;
}

}  // namespace kitchen
