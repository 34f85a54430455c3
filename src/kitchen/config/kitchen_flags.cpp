#include "kitchen/config/kitchen_flags.h"

#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"

#include <fmt/format.h>

namespace kitchen {

namespace {

std::vector<std::string> given_recipe_flags(const KitchenFlags& flags) {
  std::vector<std::string> given;
  if (flags.kitchen_config_file) given.emplace_back("--kitchen-config-file");
  if (flags.kitchen_recipe_number) given.emplace_back("--kitchen-recipe-number");
  if (flags.kitchen_recipe_name) given.emplace_back("--kitchen-recipe-name");
  return given;
}

std::shared_ptr<const RecipeConfig> recipe_of(const KitchenFlags& flags) {
  if (flags.kitchen_config_file) {
    return std::make_shared<const RecipeConfig>(
        load_quantization_recipe(*flags.kitchen_config_file));
  }
  if (flags.kitchen_recipe_number) {
    return std::make_shared<const RecipeConfig>(
        kitchen_quantization_recipe_config(*flags.kitchen_recipe_number));
  }
  return std::make_shared<const RecipeConfig>(
      kitchen_quantization_recipe_config_by_name(*flags.kitchen_recipe_name));
}

}  // namespace

void apply_kitchen_flags(const KitchenFlags& flags, TransformerConfig& config) {
  const std::vector<std::string> given = given_recipe_flags(flags);
  if (given.size() > 1) {
    throw ValueError(fmt::format("{} is not allowed with {}; give one recipe", given[1], given[0]));
  }
  const std::string& backend = flags.kitchen_attention_backend;
  if (backend != "sdpa" && backend != "fa") {
    throw ValueError(
        fmt::format("--kitchen-attention-backend is \"{}\", expected one of: sdpa, fa", backend));
  }
  if (!given.empty()) {
    if (config.quant_recipe) {
      throw AssertionError(fmt::format(
          "{}: the quantization recipe is already configured; give it in one place", given[0]));
    }
    config.quant_recipe = recipe_of(flags);
    config.use_kitchen = true;
  }
  config.use_kitchen_attention = flags.use_kitchen_attention;
  config.kitchen_attention_backend = backend;
  if (config.use_kitchen_attention && !config.use_kitchen) {
    logger().warning(
        "--use-kitchen-attention has no effect without a recipe; give --kitchen-config-file, "
        "--kitchen-recipe-number or --kitchen-recipe-name");
  }
}

}  // namespace kitchen
