#include "kitchen/extension/kitchen_quantization_params.h"

#include "kitchen/base/error.h"
#include "kitchen/base/rethrow.h"
#include "kitchen/extension/compound_params_config_schema.h"
#include "kitchen/extension/config_schema_checks.h"

#include <fmt/format.h>

#include <vector>

namespace kitchen {

namespace {

ConfigParts parse_documented_type(KitchenConfigType type, const ConfigDict& dict) {
  switch (type) {
    case KitchenConfigType::QLINEAR_PARAMS:
      return {QLinearParamsConfigSchema::parse_config_dict(dict).to_kitchen_qlinear(), {}, {}};
    case KitchenConfigType::QATTENTION_PARAMS:
      return {
          {}, QAttentionParamsConfigSchema::parse_config_dict(dict).to_kitchen_qattention(), {}};
    case KitchenConfigType::QFLASHATTENTION_PARAMS:
      return {{}, {}, QFlashAttentionParamsConfigSchema::parse_config_dict(dict).to_kitchen_qfa()};
    case KitchenConfigType::COMPOUND_PARAMS: {
      const auto compound = CompoundParamsConfigSchema::parse_config_dict(dict);
      return {compound.get_qlinear_params(), compound.get_qattention_params(),
              compound.get_qfa_params()};
    }
  }
  throw NotImplementedError("Unhandled configuration type: " + to_string(type));
}

std::string misspelt_type_key(const ConfigDict& dict) {
  for (const ConfigDict::Entry& entry : dict) {
    const std::string hint = did_you_mean(entry.key, {KITCHEN_CONFIG_TYPE_KEY});
    if (!hint.empty()) {
      return fmt::format("; found \"{}\"{}: {}", entry.key, in_parentheses(entry.key_location),
                         hint);
    }
  }
  return {};
}

ConfigParts parse_dict(const ConfigDict& dict) {
  const ConfigValue* type = dict.find(KITCHEN_CONFIG_TYPE_KEY);
  if (type == nullptr) {
    throw ValueError(fmt::format(
        "a quantization config must have '{0}' key; key {0} is missing{1}{2}",
        KITCHEN_CONFIG_TYPE_KEY, in_parentheses(dict.location()), misspelt_type_key(dict)));
  }
  if (const auto* text = type->get_if<std::string>()) {
    if (const ExtensionConfigParser* parser = find_extension_config_parser(*text)) {
      return parser->parse(dict);
    }
  }
  return parse_documented_type(extension::config_type_of(*type), dict);
}

}  // namespace

KitchenQuantizationParams KitchenQuantizationParams::parse_from_config(
    const std::optional<QuantizationConfig>& quant_config) {
  if (!quant_config) {
    throw AssertionError(
        "Kitchen extension expects a quantization config for each Kitchen layer, got none: no rule "
        "of the recipe takes this layer; add a last rule with pattern \"*\"");
  }
  try {
    const ConfigParts parts = parse_dict(quant_config->config);
    return {parts.qlinear_params, quant_config->match_input, quant_config->config_key,
            parts.qattention_params, parts.qfa_params};
  } catch (const Error& error) {
    rethrow_with_suffix(error, "; in config " + quant_config->config_key);
  }
}

}  // namespace kitchen
