#include "kitchen/extension/q_attention_params_config_schema.h"

#include "kitchen/base/rethrow.h"
#include "kitchen/extension/config_schema_checks.h"
#include "kitchen/recipes/predefined.h"

#include <utility>

namespace kitchen {

QAttentionParamsConfigSchema::QAttentionParamsConfigSchema(KitchenConfigType config_type,
                                                           ConfigValue recipe_idx_value)
    : kitchen_config_type(config_type), recipe_idx_value_(std::move(recipe_idx_value)) {
  post_init();
}

QAttentionParamsConfigSchema QAttentionParamsConfigSchema::parse_config_dict(
    const ConfigDict& config_dict) {
  const KitchenConfigType type = extension::check_schema_dict(config_dict, get_expected_keys(),
                                                              KitchenConfigType::QATTENTION_PARAMS);
  return {type, config_dict.at("recipe_idx")};
}

std::set<std::string> QAttentionParamsConfigSchema::get_expected_keys() {
  return {KITCHEN_CONFIG_TYPE_KEY, "recipe_idx"};
}

void QAttentionParamsConfigSchema::post_init() {
  extension::check_own_type(kitchen_config_type, KitchenConfigType::QATTENTION_PARAMS);
  recipe_idx = extension::checked_recipe_idx(recipe_idx_value_);
}

std::shared_ptr<const QAttentionParams> QAttentionParamsConfigSchema::to_kitchen_qattention()
    const {
  try {
    return get_qattention_params_from_qat_params(recipe_idx);
  } catch (const Error& error) {
    rethrow_with_suffix(error, in_parentheses(recipe_idx_value_.location()));
  }
}

}  // namespace kitchen
