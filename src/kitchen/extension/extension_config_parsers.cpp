#include "kitchen/extension/extension_config_parsers.h"

#include "kitchen/extension/q_attention_recipe.h"
#include "kitchen/extension/q_linear_recipe.h"

namespace kitchen {

const std::vector<ExtensionConfigParser>& extension_config_parsers() {
  static const std::vector<ExtensionConfigParser> parsers = {
      {kQLinearRecipeType, &parse_q_linear_recipe},
      {kQAttentionRecipeType, &parse_q_attention_recipe},
  };
  return parsers;
}

const ExtensionConfigParser* find_extension_config_parser(std::string_view type) {
  for (const ExtensionConfigParser& parser : extension_config_parsers()) {
    if (parser.type == type) return &parser;
  }
  return nullptr;
}

}  // namespace kitchen
