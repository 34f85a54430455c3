#include "kitchen/extension/compound_params_config_schema.h"

#include "kitchen/extension/config_schema_checks.h"

#include <fmt/format.h>

#include <utility>

namespace kitchen {

namespace {

/// A part may be given once; a second one would silently win.
void refuse_duplicate(bool is_taken, const std::string& type) {
  if (!is_taken) return;
  throw ValueError("Duplicate config type: " + type +
                   "; a compound takes one linear, one attention and one flash attention part");
}

}  // namespace

CompoundParamsConfigSchema::CompoundParamsConfigSchema(KitchenConfigType config_type,
                                                       ConfigValue configs_value)
    : kitchen_config_type(config_type), configs_value_(std::move(configs_value)) {
  post_init();
}

CompoundParamsConfigSchema CompoundParamsConfigSchema::parse_config_dict(
    const ConfigDict& config_dict) {
  const KitchenConfigType type = extension::check_schema_dict(config_dict, get_expected_keys(),
                                                              KitchenConfigType::COMPOUND_PARAMS);
  return {type, config_dict.at("configs")};
}

std::set<std::string> CompoundParamsConfigSchema::get_expected_keys() {
  return {KITCHEN_CONFIG_TYPE_KEY, "configs"};
}

void CompoundParamsConfigSchema::post_init() {
  extension::check_own_type(kitchen_config_type, KitchenConfigType::COMPOUND_PARAMS);
  const auto* list = configs_value_.get_if<ConfigList>();
  if (list == nullptr) {
    throw TypeError("configs must be a list, got " + describe(configs_value_));
  }
  configs = *list;
  q_linear_params.reset();
  q_attention_params.reset();
  q_fa_params.reset();
  extension_parts = {};
  for (std::size_t i = 0; i < configs.size(); ++i) parse_part(configs[i], i);
}

void CompoundParamsConfigSchema::parse_part(const ConfigValue& element, std::size_t index) {
  const auto* dict = element.get_if<ConfigDict>();
  if (dict == nullptr) {
    throw TypeError(fmt::format("configs[{}] must be a mapping, got {}", index, describe(element)));
  }
  const ConfigValue* type_value = dict->find(KITCHEN_CONFIG_TYPE_KEY);
  if (type_value == nullptr) {
    throw KeyError(fmt::format("Missing required keys: [{}] in configs[{}]{}",
                               KITCHEN_CONFIG_TYPE_KEY, index, in_parentheses(dict->location())));
  }
  if (const auto* text = type_value->get_if<std::string>()) {
    if (const ExtensionConfigParser* parser = find_extension_config_parser(*text)) {
      add_extension_parts(parser->parse(*dict), *text);
      return;
    }
  }
  const KitchenConfigType type = extension::config_type_of(*type_value);
  switch (type) {
    case KitchenConfigType::QLINEAR_PARAMS: {
      auto part = QLinearParamsConfigSchema::parse_config_dict(*dict);
      refuse_duplicate(q_linear_params || extension_parts.qlinear_params, to_string(type));
      q_linear_params = std::move(part);
      return;
    }
    case KitchenConfigType::QATTENTION_PARAMS: {
      auto part = QAttentionParamsConfigSchema::parse_config_dict(*dict);
      refuse_duplicate(q_attention_params || extension_parts.qattention_params, to_string(type));
      q_attention_params = std::move(part);
      return;
    }
    case KitchenConfigType::QFLASHATTENTION_PARAMS: {
      auto part = QFlashAttentionParamsConfigSchema::parse_config_dict(*dict);
      refuse_duplicate(q_fa_params || extension_parts.qfa_params, to_string(type));
      q_fa_params = std::move(part);
      return;
    }
    case KitchenConfigType::COMPOUND_PARAMS:
      break;
  }
  extension::refuse_config_type(*type_value);
}

void CompoundParamsConfigSchema::add_extension_parts(const ConfigParts& parts,
                                                     const std::string& type) {
  if (parts.qlinear_params) {
    refuse_duplicate(q_linear_params || extension_parts.qlinear_params, type);
    extension_parts.qlinear_params = parts.qlinear_params;
  }
  if (parts.qattention_params) {
    refuse_duplicate(q_attention_params || extension_parts.qattention_params, type);
    extension_parts.qattention_params = parts.qattention_params;
  }
  if (parts.qfa_params) {
    refuse_duplicate(q_fa_params || extension_parts.qfa_params, type);
    extension_parts.qfa_params = parts.qfa_params;
  }
}

std::shared_ptr<const QLinearParams> CompoundParamsConfigSchema::get_qlinear_params() const {
  return q_linear_params ? q_linear_params->to_kitchen_qlinear() : extension_parts.qlinear_params;
}

std::shared_ptr<const QAttentionParams> CompoundParamsConfigSchema::get_qattention_params() const {
  return q_attention_params ? q_attention_params->to_kitchen_qattention()
                            : extension_parts.qattention_params;
}

std::shared_ptr<const QFlashAttentionParams> CompoundParamsConfigSchema::get_qfa_params() const {
  return q_fa_params ? q_fa_params->to_kitchen_qfa() : extension_parts.qfa_params;
}

}  // namespace kitchen
