#include "kitchen/config/recipe_config.h"

#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/base/nearest_name.h"
#include "kitchen/config/config_reader.h"
#include "kitchen/config/glob_matcher.h"
#include "kitchen/config/yaml.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <string_view>
#include <utility>

namespace kitchen {

namespace {

const std::vector<std::string>& matcher_keys() {
  static const std::vector<std::string> keys = {"type", "pattern", "config", "enabled"};
  return keys;
}

/// Points at the key that a user probably meant by `wanted`: "; found "patern" (file, line 4): did
/// you ...".
std::string misspelt(const ConfigDict& dict, const std::string& wanted) {
  for (const ConfigDict::Entry& entry : dict) {
    const std::vector<std::string>& known = matcher_keys();
    const std::vector<std::string> near = nearest_names(entry.key, known);
    if (entry.key != wanted && !near.empty() && near.front() == wanted) {
      return fmt::format("; found \"{}\"{}: did you mean \"{}\"?", entry.key,
                         in_parentheses(entry.key_location), wanted);
    }
  }
  return {};
}

/// The text under a key that must be there.
std::string required_text(const ConfigDict& rule, const std::string& key, const std::string& name) {
  const ConfigValue* value = rule.find(key);
  if (value == nullptr) {
    throw AssertionError(fmt::format("matcher {}: key \"{}\" is missing{}{}", name, key,
                                     in_parentheses(rule.location()), misspelt(rule, key)));
  }
  if (const auto* text = value->get_if<std::string>()) return *text;
  throw TypeError(
      fmt::format("matcher {}: {} must be a string, got {}", name, key, describe(*value)));
}

/// False for a rule that is switched off, which is not looked at any further.
bool is_enabled(const ConfigDict& rule, const std::string& name) {
  const ConfigValue* value = rule.find("enabled");
  if (value == nullptr || value->is_null()) {
    logger().warning(fmt::format("matcher {} is off, because it has no `enabled: true`{}{}", name,
                                 in_parentheses(rule.location()), misspelt(rule, "enabled")));
    return false;
  }
  if (const auto* enabled = value->get_if<bool>()) return *enabled;
  throw TypeError(fmt::format("matcher {}: enabled must be a bool (true or false), got {}", name,
                              describe(*value)));
}

std::shared_ptr<Matcher> build_matcher(const ConfigDict& rule, const std::string& name) {
  const std::string type = required_text(rule, "type", name);
  if (type != "glob") {
    throw NotImplementedError(
        fmt::format("matcher {}: Match type \"{}\"{} is not known; known "
                    "types: glob. {}",
                    name, type, in_parentheses(rule.location()), did_you_mean(type, {"glob"})));
  }
  return std::make_shared<GlobMatcher>(required_text(rule, "pattern", name),
                                       required_text(rule, "config", name), name, rule.location());
}

/// Other keys at the top of a file are legal (a place for anchors), unless they look like a slip.
void warn_of_misspelt_sections(const ConfigDict& dict) {
  const std::vector<std::string> known = {"configs", "matchers"};
  for (const ConfigDict::Entry& entry : dict) {
    if (entry.key == "configs" || entry.key == "matchers") continue;
    const std::string hint = did_you_mean(entry.key, known);
    if (hint.empty()) continue;
    logger().warning(fmt::format("recipe: key \"{}\"{} is not read: {}", entry.key,
                                 in_parentheses(entry.key_location), hint));
  }
}

}  // namespace

RecipeConfig::RecipeConfig(std::vector<std::shared_ptr<Matcher>> matchers,
                           std::map<std::string, ConfigDict> configs)
    : matchers_(std::move(matchers)), configs_(std::move(configs)) {}

RecipeConfig RecipeConfig::from_yaml_file(const std::string& path) {
  const ConfigDict dict =
      parse_yaml_mapping_file(path, "a recipe: a mapping with configs and matchers");
  RecipeConfig recipe = from_config_dict(dict);
  logger().info("loaded quantization recipe " + path + ":\n" + recipe.repr());
  return recipe;
}

RecipeConfig RecipeConfig::from_config_dict(const ConfigDict& dict) {
  warn_of_misspelt_sections(dict);
  std::map<std::string, ConfigDict> configs;
  if (const ConfigDict* section = read_mapping(dict, "configs")) {
    for (const ConfigDict::Entry& entry : *section) {
      const auto* config = entry.value.get_if<ConfigDict>();
      if (config == nullptr) {
        throw TypeError(
            fmt::format("config {} must be a mapping, got {}", entry.key, describe(entry.value)));
      }
      configs.emplace(entry.key, *config);
    }
  }
  std::optional<ConfigDict> matchers;
  if (const ConfigDict* section = read_mapping(dict, "matchers")) matchers = *section;
  return {_build_matchers(matchers), std::move(configs)};
}

std::vector<std::shared_ptr<Matcher>> RecipeConfig::_build_matchers(
    const std::optional<ConfigDict>& matchers) {
  std::vector<std::shared_ptr<Matcher>> built;
  if (!matchers) return built;
  for (const ConfigDict::Entry& entry : *matchers) {
    const auto* rule = entry.value.get_if<ConfigDict>();
    if (rule == nullptr) {
      throw TypeError(
          fmt::format("matcher {} must be a mapping, got {}", entry.key, describe(entry.value)));
    }
    if (is_enabled(*rule, entry.key)) built.push_back(build_matcher(*rule, entry.key));
  }
  return built;
}

std::optional<std::string> RecipeConfig::match_to_config_key(const MatchContext& context) const {
  for (const std::shared_ptr<Matcher>& matcher : matchers_) {
    if (std::optional<std::string> key = matcher->match(context)) return key;
  }
  return std::nullopt;
}

std::optional<QuantizationConfig> RecipeConfig::match(const MatchContext& context) const {
  const std::optional<std::string> key = match_to_config_key(context);
  if (!key) {
    logger().info(to_string(context) + " matches no rule of the recipe");
    return std::nullopt;
  }
  const auto found = configs_.find(*key);
  if (found == configs_.end()) {
    throw KeyError(fmt::format(
        "config \"{}\", chosen for {}, is not in the recipe's configs: {}. {}", *key,
        context.module_path, join_names(config_names()), did_you_mean(*key, config_names())));
  }
  logger().info(fmt::format("{} gets config {}", to_string(context), *key));
  return QuantizationConfig(found->second, context, *key);
}

std::vector<std::string> RecipeConfig::config_names() const {
  std::vector<std::string> names;
  for (const auto& entry : configs_) names.push_back(entry.first);
  return names;
}

std::string RecipeConfig::repr() const {
  std::string out = "RecipeConfig(\n  matchers:\n";
  for (const std::shared_ptr<Matcher>& matcher : matchers_) out += "    " + matcher->repr() + "\n";
  out += "  configs:\n";
  for (const auto& [name, config] : configs_) out += "    " + name + ": " + config.repr() + "\n";
  return out + ")";
}

std::optional<std::int64_t> layer_number_of(const std::string& module_path) {
  constexpr std::string_view kPrefix = "layers.";
  for (std::size_t found = module_path.find(kPrefix); found != std::string::npos;
       found = module_path.find(kPrefix, found + 1)) {
    const char* digits = module_path.data() + found + kPrefix.size();
    const char* end = module_path.data() + module_path.size();
    if (digits == end || std::isdigit(static_cast<unsigned char>(*digits)) == 0) continue;
    std::int64_t number = 0;
    const bool fits = std::from_chars(digits, end, number).ec == std::errc();
    return fits ? std::optional(number) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<QuantizationConfig> get_quant_config_or_none(
    const std::string& module_path, const std::shared_ptr<const RecipeConfig>& recipe) {
  if (!recipe) return std::nullopt;
  return recipe->match(MatchContext{module_path, layer_number_of(module_path)});
}

RecipeConfig load_quantization_recipe(const std::string& path) {
  return RecipeConfig::from_yaml_file(path);
}

RecipeConfig kitchen_quantization_recipe_config(std::int64_t recipe_idx) {
  return {{std::make_shared<GlobMatcher>("*", "default")},
          {{"default",
            ConfigDict{{"kitchen_config_type", "QLinearParams"}, {"recipe_idx", recipe_idx}}}}};
}

RecipeConfig kitchen_quantization_recipe_config_by_name(const std::string& recipe_name) {
  return {
      {std::make_shared<GlobMatcher>("*", "default")},
      {{"default", ConfigDict{{"kitchen_config_type", "QLinearRecipe"}, {"recipe", recipe_name}}}}};
}

}  // namespace kitchen
