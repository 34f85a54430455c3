#pragma once

#include "kitchen/extension/extension_config_parsers.h"
#include "kitchen/extension/kitchen_config_type.h"
#include "kitchen/extension/q_attention_params_config_schema.h"
#include "kitchen/extension/q_flash_attention_params_config_schema.h"
#include "kitchen/extension/q_linear_params_config_schema.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace kitchen {

/// Parses a configuration of type CompoundParams, which holds several parts; each module takes its
/// own:
/// `{kitchen_config_type: CompoundParams, configs: [<linear part>, <attention or flash attention
/// part>]}`.
///
/// `configs` is a list (the documented annotation says dictionary, but every example is a list). An
/// empty list is legal, and so are an attention part and a flash attention part together.
class CompoundParamsConfigSchema {
 public:
  /// Runs post_init().
  CompoundParamsConfigSchema(KitchenConfigType config_type, ConfigValue configs_value);

  /// @throws as the leaf schemas, then what post_init throws.
  static CompoundParamsConfigSchema parse_config_dict(const ConfigDict& config_dict);

  /// {kitchen_config_type, configs}; the members that are derived from `configs` are no keys.
  static std::set<std::string> get_expected_keys();

  /// Parses the parts in order.
  /// @throws TypeError "kitchen_config_type must be CompoundParams", or if `configs` is no list or
  /// an element
  ///         is no mapping; KeyError "Missing required keys" for an element without a type;
  ///         ValueError "Unsupported config type" (also for a nested CompoundParams), "Duplicate
  ///         config type"; and what the schema of a part throws.
  void post_init();

  /// Each returns null if the part is absent.
  [[nodiscard]] std::shared_ptr<const QLinearParams> get_qlinear_params() const;
  /// The attention part as recipe data; null if absent.
  [[nodiscard]] std::shared_ptr<const QAttentionParams> get_qattention_params() const;
  /// The flash attention part as recipe data; null if absent.
  [[nodiscard]] std::shared_ptr<const QFlashAttentionParams> get_qfa_params() const;

  KitchenConfigType kitchen_config_type;  ///< COMPOUND_PARAMS once constructed
  ConfigList configs;                     ///< as given, in order
  std::optional<QLinearParamsConfigSchema> q_linear_params;
  std::optional<QAttentionParamsConfigSchema> q_attention_params;
  std::optional<QFlashAttentionParamsConfigSchema> q_fa_params;
  ConfigParts extension_parts;  ///< Ext: parts of the types that the extension table parses

 private:
  void parse_part(const ConfigValue& element, std::size_t index);
  void add_extension_parts(const ConfigParts& parts, const std::string& type);

  ConfigValue configs_value_;
};

}  // namespace kitchen
