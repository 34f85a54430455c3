#pragma once

#include "kitchen/config/config_value.h"
#include "kitchen/recipes/q_attention_params.h"
#include "kitchen/recipes/q_flash_attention_params.h"
#include "kitchen/recipes/q_linear_params.h"

#include <memory>
#include <string_view>
#include <vector>

namespace kitchen {

/// What one configuration gives to a layer; any subset.
struct ConfigParts {
  std::shared_ptr<const QLinearParams> qlinear_params;
  std::shared_ptr<const QAttentionParams> qattention_params;
  std::shared_ptr<const QFlashAttentionParams> qfa_params;
};

/// Parses the configurations of one type that the documented API does not have (Ext).
struct ExtensionConfigParser {
  const char* type;  ///< text under `kitchen_config_type`
  ConfigParts (*parse)(const ConfigDict& dict);
};

/// The table that is asked before a type is refused, also inside CompoundParams: QLinearRecipe and
/// QAttentionRecipe. A new type is one more row.
const std::vector<ExtensionConfigParser>& extension_config_parsers();

/// Row of that type, or null.
const ExtensionConfigParser* find_extension_config_parser(std::string_view type);

}  // namespace kitchen
