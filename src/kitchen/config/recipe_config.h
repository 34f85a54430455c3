#pragma once

#include "kitchen/config/config_value.h"
#include "kitchen/config/matcher.h"
#include "kitchen/config/quantization_config.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kitchen {

/// A quantization recipe: named configurations, and rules that choose one for each layer.
///
/// The first rule that matches wins. References are looked up when a layer matches;
/// `validate_recipe` checks all of them before any work.
class RecipeConfig {
 public:
  RecipeConfig(std::vector<std::shared_ptr<Matcher>> matchers,
               std::map<std::string, ConfigDict> configs);

  /// @throws IOError if the file cannot be read, ValueError on a YAML error (with its line),
  /// TypeError if the
  ///         document is empty or no mapping, and what _build_matchers throws.
  static RecipeConfig from_yaml_file(const std::string& path);

  /// Reads `matchers` and `configs`; either may be missing or null.
  /// @throws TypeError if one of them, or a configuration, is no mapping.
  static RecipeConfig from_config_dict(const ConfigDict& dict);

  /// Builds the enabled rules in file order. A rule without `enabled: true` is skipped unread; a
  /// missing `enabled` is logged as a warning.
  /// @throws AssertionError if `type`, `pattern` or `config` is missing, NotImplementedError for a
  /// type other
  ///         than glob, TypeError for a value of the wrong kind.
  static std::vector<std::shared_ptr<Matcher>> _build_matchers(
      const std::optional<ConfigDict>& matchers);

  /// Key that the first matching rule gives, or nullopt.
  [[nodiscard]] std::optional<std::string> match_to_config_key(const MatchContext& context) const;

  /// Copy of the configuration that the layer gets, or nullopt. Logged at info level.
  /// @throws KeyError naming the key and the known ones if `configs` lacks it.
  [[nodiscard]] std::optional<QuantizationConfig> match(const MatchContext& context) const;

  [[nodiscard]] const std::vector<std::shared_ptr<Matcher>>& matchers() const { return matchers_; }
  [[nodiscard]] const std::map<std::string, ConfigDict>& configs() const { return configs_; }
  [[nodiscard]] std::vector<std::string> config_names() const;
  [[nodiscard]] std::string repr() const;

 private:
  std::vector<std::shared_ptr<Matcher>> matchers_;
  std::map<std::string, ConfigDict> configs_;
};

/// The zero-based layer index in a module path, 3 in "decoder.layers.3.mlp": the digits after the first
/// "layers." that digits follow.
std::optional<std::int64_t> layer_number_of(const std::string& module_path);

/// What `recipe` gives to the layer at `module_path`; nullopt without a recipe or a matching rule.
std::optional<QuantizationConfig> get_quant_config_or_none(
    const std::string& module_path, const std::shared_ptr<const RecipeConfig>& recipe = nullptr);

/// RecipeConfig::from_yaml_file.
RecipeConfig load_quantization_recipe(const std::string& path);

/// Every linear layer gets recipe number `recipe_idx`, which is validated when a layer reads it.
RecipeConfig kitchen_quantization_recipe_config(std::int64_t recipe_idx);

/// Ext: as kitchen_quantization_recipe_config for a recipe that has a name only.
RecipeConfig kitchen_quantization_recipe_config_by_name(const std::string& recipe_name);

}  // namespace kitchen
