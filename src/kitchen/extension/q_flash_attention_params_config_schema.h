#pragma once

#include "kitchen/config/config_value.h"
#include "kitchen/extension/kitchen_config_type.h"
#include "kitchen/recipes/q_flash_attention_params.h"

#include <memory>
#include <set>
#include <string>

namespace kitchen {

/// Parses a configuration of type QFlashAttentionParams:
/// `{kitchen_config_type: QFlashAttentionParams, recipe_name: triton_fa_bf16_for_all_base_2}`.
class QFlashAttentionParamsConfigSchema {
 public:
  /// Runs post_init().
  QFlashAttentionParamsConfigSchema(KitchenConfigType config_type, ConfigValue recipe_name_value);

  /// @throws KeyError "Missing required keys", then KeyError "Unexpected keys in config", then
  /// ValueError
  ///         "Unsupported config type", then ValueError "Parsing config dict of incorrect type",
  ///         then what post_init throws.
  static QFlashAttentionParamsConfigSchema parse_config_dict(const ConfigDict& config_dict);

  /// {kitchen_config_type, recipe_name}.
  static std::set<std::string> get_expected_keys();

  /// @throws TypeError "kitchen_config_type must be QFlashAttentionParams", ValueError
  ///         "recipe_name must be a string".
  void post_init();

  /// Parameters of that name; the same object for equal names.
  /// @throws ValueError naming an unknown one and the known ones.
  [[nodiscard]] std::shared_ptr<const QFlashAttentionParams> to_kitchen_qfa() const;

  KitchenConfigType kitchen_config_type;  ///< QFLASHATTENTION_PARAMS once constructed
  std::string recipe_name;

 private:
  ConfigValue
      recipe_name_value_;  ///< as given: a wrong type is reported by post_init, with its line
};

}  // namespace kitchen
