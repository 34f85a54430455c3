#pragma once

#include "kitchen/config/source_location.h"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kitchen {

class ConfigValue;
using ConfigList = std::vector<ConfigValue>;

/// Text keys to values, in the order of insertion. Value semantics: a copy is deep.
class ConfigDict {
 public:
  struct Entry;
  using const_iterator = std::vector<Entry>::const_iterator;

  ConfigDict();
  /// `{{"recipe_idx", 2}, ...}`. @throws KeyError on a repeated key.
  ConfigDict(std::initializer_list<Entry> entries);
  ConfigDict(const ConfigDict& other);
  ConfigDict(ConfigDict&& other) noexcept;
  ConfigDict& operator=(const ConfigDict& other);
  ConfigDict& operator=(ConfigDict&& other) noexcept;
  ~ConfigDict();

  [[nodiscard]] bool contains(std::string_view key) const;
  /// @throws KeyError naming the key.
  [[nodiscard]] const ConfigValue& at(std::string_view key) const;
  [[nodiscard]] std::optional<ConfigValue> get(std::string_view key) const;
  /// As get without the copy: null if absent. Invalidated by set and erase.
  [[nodiscard]] const ConfigValue* find(std::string_view key) const;
  [[nodiscard]] std::set<std::string> keys() const;
  /// Keys in order of insertion.
  [[nodiscard]] std::vector<std::string> ordered_keys() const;
  /// Replaces the value of `key`, or appends it.
  void set(std::string key, ConfigValue value, SourceLocation key_location = {});
  /// False if there was none.
  bool erase(std::string_view key);

  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] const_iterator begin() const;
  [[nodiscard]] const_iterator end() const;

  /// Where the dictionary starts: the line of the key that it belongs to.
  [[nodiscard]] const SourceLocation& location() const { return location_; }
  void set_location(SourceLocation location) { location_ = std::move(location); }
  /// Where `key` was written; unknown if absent.
  [[nodiscard]] SourceLocation key_location(std::string_view key) const;

  /// YAML flow style: `{kitchen_config_type: "QLinearParams", recipe_idx: 2}`.
  [[nodiscard]] std::string repr() const;

 private:
  std::vector<Entry> entries_;
  SourceLocation location_;
};

/// null | bool | int64 | double | string | list | dict. Alternatives never convert into each other:
/// `true` is no integer and 2.0 is no 2.
class ConfigValue {
 public:
  ConfigValue() = default;
  ConfigValue(std::nullptr_t) {}
  ConfigValue(bool value) : value_(value) {}
  ConfigValue(int value) : value_(static_cast<std::int64_t>(value)) {}
  ConfigValue(std::int64_t value) : value_(value) {}
  ConfigValue(double value) : value_(value) {}
  ConfigValue(const char* value) : value_(std::string(value)) {}
  ConfigValue(std::string value) : value_(std::move(value)) {}
  ConfigValue(ConfigList value) : value_(std::move(value)) {}
  ConfigValue(ConfigDict value) : value_(std::move(value)) {}

  [[nodiscard]] bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  /// Pointer to the alternative T (bool, int64_t, double, string, ConfigList, ConfigDict), or null.
  template <class T>
  [[nodiscard]] const T* get_if() const {
    return std::get_if<T>(&value_);
  }
  /// "null", "bool", "integer", "float", "string", "list" or "mapping".
  [[nodiscard]] std::string type_name() const;

  [[nodiscard]] const SourceLocation& location() const { return location_; }
  void set_location(SourceLocation location) { location_ = std::move(location); }

  /// YAML flow style; strings are quoted, so that "2" differs from 2.
  [[nodiscard]] std::string repr() const;

  friend bool operator==(const ConfigValue& a, const ConfigValue& b);
  friend bool operator!=(const ConfigValue& a, const ConfigValue& b) { return !(a == b); }

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, ConfigList, ConfigDict>
      value_;
  SourceLocation location_;
};

struct ConfigDict::Entry {
  Entry(std::string entry_key, ConfigValue entry_value, SourceLocation where = {})
      : key(std::move(entry_key)), value(std::move(entry_value)), key_location(std::move(where)) {}

  std::string key;
  ConfigValue value;
  SourceLocation key_location;
};

/// Same keys with equal values; order and locations do not count, as in Python.
bool operator==(const ConfigDict& a, const ConfigDict& b);
inline bool operator!=(const ConfigDict& a, const ConfigDict& b) {
  return !(a == b);
}

/// `"two" (string)` with its location: the "found" part of a message. A long value is cut at 200 bytes.
std::string describe(const ConfigValue& value);

}  // namespace kitchen
