#include "kitchen/extension/config_schema_checks.h"

#include "kitchen/extension/extension_config_parsers.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

namespace kitchen::extension {

namespace {

std::vector<std::string> difference(const std::set<std::string>& a,
                                    const std::set<std::string>& b) {
  std::vector<std::string> rest;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(rest));
  return rest;
}

/// "; key recipe_idx is missing (file, line 2); found "recipe_index" ..., did you mean
/// "recipe_idx"?".
std::string explain_missing(const ConfigDict& dict, const std::vector<std::string>& missing,
                            const std::vector<std::string>& unexpected) {
  std::string text;
  for (const std::string& key : missing) {
    text += fmt::format("; key {} is missing{}", key, in_parentheses(dict.location()));
    for (const std::string& found : unexpected) {
      if (did_you_mean(found, {key}).empty()) continue;
      text += fmt::format("; found \"{}\"{}, did you mean \"{}\"?", found,
                          in_parentheses(dict.key_location(found)), key);
    }
  }
  return text;
}

std::string explain_unexpected(const ConfigDict& dict, const std::vector<std::string>& unexpected,
                               const std::set<std::string>& expected) {
  const std::vector<std::string> known(expected.begin(), expected.end());
  std::string text = "; expected keys: " + join_names(known);
  for (const std::string& key : unexpected) {
    const std::string hint = did_you_mean(key, known);
    text += fmt::format("; {}{}{}{}", key, in_parentheses(dict.key_location(key)),
                        hint.empty() ? "" : ": ", hint);
  }
  return text;
}

}  // namespace

std::vector<std::string> known_config_types() {
  std::vector<std::string> types;
  for (const KitchenConfigType type :
       {KitchenConfigType::QLINEAR_PARAMS, KitchenConfigType::QATTENTION_PARAMS,
        KitchenConfigType::QFLASHATTENTION_PARAMS, KitchenConfigType::COMPOUND_PARAMS}) {
    types.push_back(to_string(type));
  }
  for (const ExtensionConfigParser& parser : extension_config_parsers()) {
    types.emplace_back(parser.type);
  }
  return types;
}

void refuse_config_type(const ConfigValue& value) {
  const auto* text = value.get_if<std::string>();
  const std::vector<std::string> known = known_config_types();
  throw ValueError(fmt::format("Unsupported config type: {}; known types: {}. {}", describe(value),
                               join_names(known),
                               text != nullptr ? did_you_mean(*text, known) : std::string()));
}

KitchenConfigType config_type_of(const ConfigValue& value) {
  const auto* text = value.get_if<std::string>();
  if (text == nullptr) refuse_config_type(value);
  try {
    return from_string<KitchenConfigType>(*text);
  } catch (const ValueError&) {
    refuse_config_type(value);
  }
}

void check_schema_keys(const ConfigDict& dict, const std::set<std::string>& expected) {
  const std::set<std::string> actual = dict.keys();
  const std::vector<std::string> missing = difference(expected, actual);
  const std::vector<std::string> unexpected = difference(actual, expected);
  if (!missing.empty()) {
    throw KeyError(fmt::format("Missing required keys: [{}]{}", join_names(missing),
                               explain_missing(dict, missing, unexpected)));
  }
  if (!unexpected.empty()) {
    throw KeyError(fmt::format("Unexpected keys in config: [{}]{}", join_names(unexpected),
                               explain_unexpected(dict, unexpected, expected)));
  }
}

KitchenConfigType check_schema_dict(const ConfigDict& dict, const std::set<std::string>& expected,
                                    KitchenConfigType own) {
  check_schema_keys(dict, expected);
  const ConfigValue& value = dict.at(KITCHEN_CONFIG_TYPE_KEY);
  const KitchenConfigType type = config_type_of(value);
  if (type != own) {
    throw ValueError(fmt::format("Parsing config dict of incorrect type: {}{}, expected {}",
                                 to_string(type), in_parentheses(value.location()),
                                 to_string(own)));
  }
  return type;
}

void check_own_type(KitchenConfigType given, KitchenConfigType own) {
  if (given == own) return;
  throw TypeError(fmt::format("{} must be {}, got {}", KITCHEN_CONFIG_TYPE_KEY, to_string(own),
                              to_string(given)));
}

std::int64_t checked_recipe_idx(const ConfigValue& value) {
  const auto* index = value.get_if<std::int64_t>();
  if (index != nullptr && *index > 0) return *index;
  throw ValueError("recipe_idx must be a positive integer, got " + describe(value));
}

}  // namespace kitchen::extension
