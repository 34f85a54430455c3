#pragma once

#include "kitchen/config/config_value.h"
#include "kitchen/extension/kitchen_config_type.h"
#include "kitchen/recipes/q_attention_params.h"

#include <cstdint>
#include <memory>
#include <set>
#include <string>

namespace kitchen {

/// Parses a configuration of type QAttentionParams:
/// `{kitchen_config_type: QAttentionParams, recipe_idx: 6001}`.
class QAttentionParamsConfigSchema {
 public:
  /// Runs post_init().
  QAttentionParamsConfigSchema(KitchenConfigType config_type, ConfigValue recipe_idx_value);

  /// @throws KeyError "Missing required keys", then KeyError "Unexpected keys in config", then
  /// ValueError
  ///         "Unsupported config type", then ValueError "Parsing config dict of incorrect type",
  ///         then what post_init throws.
  static QAttentionParamsConfigSchema parse_config_dict(const ConfigDict& config_dict);

  /// {kitchen_config_type, recipe_idx}.
  static std::set<std::string> get_expected_keys();

  /// @throws TypeError "kitchen_config_type must be QAttentionParams", ValueError
  ///         "recipe_idx must be a positive integer".
  void post_init();

  /// Parameters of that number; the same object for equal numbers.
  /// @throws ValueError naming an unknown one and the known ones.
  [[nodiscard]] std::shared_ptr<const QAttentionParams> to_kitchen_qattention() const;

  KitchenConfigType kitchen_config_type;  ///< QATTENTION_PARAMS once constructed
  std::int64_t recipe_idx = 0;            ///< above 0

 private:
  ConfigValue
      recipe_idx_value_;  ///< as given: a wrong type is reported by post_init, with its line
};

}  // namespace kitchen
