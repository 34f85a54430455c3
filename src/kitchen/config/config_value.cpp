#include "kitchen/config/config_value.h"

#include "kitchen/base/error.h"
#include "kitchen/base/nearest_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace kitchen {

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string key_repr(const std::string& key) {
  const bool plain = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  });
  return plain ? key : quoted(key);
}

std::string list_repr(const ConfigList& list) {
  std::string out = "[";
  for (const ConfigValue& value : list) {
    if (out.size() > 1) out += ", ";
    out += value.repr();
  }
  return out + "]";
}

/// A float is written so that it reads back as a float, even when it is whole.
std::string double_repr(double value) {
  std::string text = fmt::format("{}", value);
  const bool whole = text.find_first_not_of("-0123456789") == std::string::npos;
  return whole ? text + ".0" : text;
}

}  // namespace

ConfigDict::ConfigDict() = default;
ConfigDict::ConfigDict(const ConfigDict& other) = default;
ConfigDict::ConfigDict(ConfigDict&& other) noexcept = default;
ConfigDict& ConfigDict::operator=(const ConfigDict& other) = default;
ConfigDict& ConfigDict::operator=(ConfigDict&& other) noexcept = default;
ConfigDict::~ConfigDict() = default;

ConfigDict::ConfigDict(std::initializer_list<Entry> entries) {
  for (const Entry& entry : entries) {
    if (contains(entry.key)) throw KeyError("duplicate key " + entry.key);
    entries_.push_back(entry);
  }
}

bool ConfigDict::contains(std::string_view key) const {
  return find(key) != nullptr;
}

const ConfigValue* ConfigDict::find(std::string_view key) const {
  for (const Entry& entry : entries_) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

const ConfigValue& ConfigDict::at(std::string_view key) const {
  if (const ConfigValue* value = find(key)) return *value;
  throw KeyError(fmt::format("key \"{}\" is missing; found: {}{} {}", key,
                             join_names(ordered_keys()), in_parentheses(location_),
                             did_you_mean(key, ordered_keys())));
}

std::optional<ConfigValue> ConfigDict::get(std::string_view key) const {
  if (const ConfigValue* value = find(key)) return *value;
  return std::nullopt;
}

std::set<std::string> ConfigDict::keys() const {
  std::set<std::string> keys;
  for (const Entry& entry : entries_) keys.insert(entry.key);
  return keys;
}

std::vector<std::string> ConfigDict::ordered_keys() const {
  std::vector<std::string> keys;
  for (const Entry& entry : entries_) keys.push_back(entry.key);
  return keys;
}

void ConfigDict::set(std::string key, ConfigValue value, SourceLocation key_location) {
  for (Entry& entry : entries_) {
    if (entry.key != key) continue;
    entry.value = std::move(value);
    entry.key_location = std::move(key_location);
    return;
  }
  entries_.emplace_back(std::move(key), std::move(value), std::move(key_location));
}

bool ConfigDict::erase(std::string_view key) {
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if (it->key != key) continue;
    entries_.erase(it);
    return true;
  }
  return false;
}

std::size_t ConfigDict::size() const {
  return entries_.size();
}
ConfigDict::const_iterator ConfigDict::begin() const {
  return entries_.begin();
}
ConfigDict::const_iterator ConfigDict::end() const {
  return entries_.end();
}

SourceLocation ConfigDict::key_location(std::string_view key) const {
  for (const Entry& entry : entries_) {
    if (entry.key == key) return entry.key_location;
  }
  return {};
}

std::string ConfigDict::repr() const {
  std::string out = "{";
  for (const Entry& entry : entries_) {
    if (out.size() > 1) out += ", ";
    out += key_repr(entry.key) + ": " + entry.value.repr();
  }
  return out + "}";
}

bool operator==(const ConfigDict& a, const ConfigDict& b) {
  if (a.size() != b.size()) return false;
  return std::all_of(a.begin(), a.end(), [&b](const ConfigDict::Entry& entry) {
    const ConfigValue* other = b.find(entry.key);
    return other != nullptr && *other == entry.value;
  });
}

bool operator==(const ConfigValue& a, const ConfigValue& b) {
  return a.value_ == b.value_;
}

std::string ConfigValue::type_name() const {
  constexpr const char* kNames[] = {"null",   "bool", "integer", "float",
                                    "string", "list", "mapping"};
  return kNames[value_.index()];
}

std::string ConfigValue::repr() const {
  if (const auto* flag = get_if<bool>()) return *flag ? "true" : "false";
  if (const auto* integer = get_if<std::int64_t>()) return std::to_string(*integer);
  if (const auto* number = get_if<double>()) return double_repr(*number);
  if (const auto* text = get_if<std::string>()) return quoted(*text);
  if (const auto* list = get_if<ConfigList>()) return list_repr(*list);
  if (const auto* dict = get_if<ConfigDict>()) return dict->repr();
  return "null";
}

std::string describe(const ConfigValue& value) {
  constexpr std::size_t kLongest = 200;  // a message is for a person
  std::string text = value.repr();
  if (text.size() > kLongest) {
    std::size_t end = kLongest;
    const auto continues = [&] { return (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U; };
    while (end > 0 && continues()) --end;  // never inside a UTF-8 character
    text = text.substr(0, end) + "...";
  }
  return text + " (" + value.type_name() + ")" + in_parentheses(value.location());
}

}  // namespace kitchen
