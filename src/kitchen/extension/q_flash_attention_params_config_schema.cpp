#include "kitchen/extension/q_flash_attention_params_config_schema.h"

#include "kitchen/base/rethrow.h"
#include "kitchen/extension/config_schema_checks.h"
#include "kitchen/recipes/predefined.h"

#include <utility>

namespace kitchen {

QFlashAttentionParamsConfigSchema::QFlashAttentionParamsConfigSchema(KitchenConfigType config_type,
                                                                     ConfigValue recipe_name_value)
    : kitchen_config_type(config_type), recipe_name_value_(std::move(recipe_name_value)) {
  post_init();
}

QFlashAttentionParamsConfigSchema QFlashAttentionParamsConfigSchema::parse_config_dict(
    const ConfigDict& config_dict) {
  const KitchenConfigType type = extension::check_schema_dict(
      config_dict, get_expected_keys(), KitchenConfigType::QFLASHATTENTION_PARAMS);
  return {type, config_dict.at("recipe_name")};
}

std::set<std::string> QFlashAttentionParamsConfigSchema::get_expected_keys() {
  return {KITCHEN_CONFIG_TYPE_KEY, "recipe_name"};
}

void QFlashAttentionParamsConfigSchema::post_init() {
  extension::check_own_type(kitchen_config_type, KitchenConfigType::QFLASHATTENTION_PARAMS);
  const auto* text = recipe_name_value_.get_if<std::string>();
  if (text == nullptr) {
    throw ValueError("recipe_name must be a string, got " + describe(recipe_name_value_));
  }
  recipe_name = *text;
}

std::shared_ptr<const QFlashAttentionParams> QFlashAttentionParamsConfigSchema::to_kitchen_qfa()
    const {
  try {
    return get_qfa_params_from_recipe_name(recipe_name);
  } catch (const Error& error) {
    rethrow_with_suffix(error, in_parentheses(recipe_name_value_.location()));
  }
}

}  // namespace kitchen
