#include "kitchen/config/config_reader.h"

#include "kitchen/base/error.h"
#include "kitchen/base/nearest_name.h"

#include <fmt/format.h>

#include <algorithm>

namespace kitchen {

namespace {

[[noreturn]] void refuse(const std::string& key, const ConfigValue& value, const char* expected) {
  throw TypeError(fmt::format("{} must be {}, got {}", key, expected, describe(value)));
}

template <class T>
T read_as(const ConfigDict& dict, const std::string& key, const T& fallback, const char* expected) {
  const ConfigValue* value = dict.find(key);
  if (value == nullptr) return fallback;
  if (const T* typed = value->get_if<T>()) return *typed;
  refuse(key, *value, expected);
}

}  // namespace

void refuse_unknown_keys(const ConfigDict& dict, const std::vector<std::string>& known,
                         const std::string& subject) {
  for (const ConfigDict::Entry& entry : dict) {
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
    throw KeyError(fmt::format("{}: unknown key \"{}\"{}; known keys: {}. {}", subject, entry.key,
                               in_parentheses(entry.key_location), join_names(known),
                               did_you_mean(entry.key, known)));
  }
}

bool read_bool(const ConfigDict& dict, const std::string& key, bool fallback) {
  return read_as<bool>(dict, key, fallback, "a bool (true or false)");
}

std::int64_t read_integer(const ConfigDict& dict, const std::string& key, std::int64_t fallback) {
  return read_as<std::int64_t>(dict, key, fallback, "an integer");
}

double read_number(const ConfigDict& dict, const std::string& key, double fallback) {
  const ConfigValue* value = dict.find(key);
  if (value == nullptr) return fallback;
  if (const auto* number = value->get_if<double>()) return *number;
  if (const auto* integer = value->get_if<std::int64_t>()) return static_cast<double>(*integer);
  refuse(key, *value, "a number");
}

std::string read_string(const ConfigDict& dict, const std::string& key,
                        const std::string& fallback) {
  return read_as<std::string>(dict, key, fallback, "a string");
}

const ConfigDict* read_mapping(const ConfigDict& dict, const std::string& key) {
  const ConfigValue* value = dict.find(key);
  if (value == nullptr || value->is_null()) return nullptr;
  if (const auto* mapping = value->get_if<ConfigDict>()) return mapping;
  refuse(key, *value, "a mapping");
}

}  // namespace kitchen
