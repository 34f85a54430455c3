#pragma once

#include "kitchen/config/config_value.h"
#include "kitchen/extension/kitchen_config_type.h"
#include "kitchen/recipes/q_linear_params.h"

#include <cstdint>
#include <memory>
#include <set>
#include <string>

namespace kitchen {

/// Parses a configuration of type QLinearParams:
/// `{kitchen_config_type: QLinearParams, recipe_idx: 2}`.
class QLinearParamsConfigSchema {
 public:
  /// Runs post_init().
  QLinearParamsConfigSchema(KitchenConfigType config_type, ConfigValue recipe_idx_value);

  /// @throws KeyError "Missing required keys", then KeyError "Unexpected keys in config", then
  /// ValueError
  ///         "Unsupported config type", then ValueError "Parsing config dict of incorrect type",
  ///         then what post_init throws.
  static QLinearParamsConfigSchema parse_config_dict(const ConfigDict& config_dict);

  /// {kitchen_config_type, recipe_idx}.
  static std::set<std::string> get_expected_keys();

  /// @throws TypeError "kitchen_config_type must be QLinearParams", ValueError
  ///         "recipe_idx must be a positive integer".
  void post_init();

  /// Parameters of that number; the same object for equal numbers.
  /// @throws ValueError naming an unknown one and the known ones.
  [[nodiscard]] std::shared_ptr<const QLinearParams> to_kitchen_qlinear() const;

  KitchenConfigType kitchen_config_type;  ///< QLINEAR_PARAMS once constructed
  std::int64_t recipe_idx = 0;            ///< above 0

 private:
  ConfigValue
      recipe_idx_value_;  ///< as given: a wrong type is reported by post_init, with its line
};

}  // namespace kitchen
