#pragma once

#include "kitchen/base/error.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

/// Typed access to the fields of a JSON object whose errors name the place. For sources of report/
/// only.
namespace kitchen::report {

/// One JSON object and where it stands, e.g. "run/metrics.jsonl:12".
class JsonFields {
 public:
  JsonFields(const nlohmann::json& object, std::string place)
      : object_(object), place_(std::move(place)) {
    if (!object.is_object()) {
      throw ValueError(
          fmt::format("{}: found {}, expected a JSON object", place_, object.type_name()));
    }
  }

  /// Absent if the key is; NaN if the value is null or says by a string that it is not finite.
  [[nodiscard]] std::optional<double> number_or_null(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) return std::nullopt;
    const bool is_not_finite =
        found->is_null() || *found == "nan" || *found == "inf" || *found == "-inf";
    if (is_not_finite) return std::numeric_limits<double>::quiet_NaN();
    if (!found->is_number()) fail(key, *found, "a number, null, \"nan\", \"inf\" or \"-inf\"");
    return found->get<double>();
  }

  [[nodiscard]] double number(const char* key) const {
    const nlohmann::json& value = required(key, "a number");
    if (!value.is_number()) fail(key, value, "a number");
    return value.get<double>();
  }

  [[nodiscard]] std::int64_t count(const char* key) const {
    const nlohmann::json& value = required(key, "a whole number >= 0");
    const bool fits = value.is_number_unsigned() &&
                      value.get<std::uint64_t>() <=
                          static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (!fits) fail(key, value, "a whole number >= 0");
    return value.get<std::int64_t>();
  }

  [[nodiscard]] std::string text(const char* key) const {
    const nlohmann::json& value = required(key, "a string");
    if (!value.is_string()) fail(key, value, "a string");
    return value.get<std::string>();
  }

 private:
  [[nodiscard]] const nlohmann::json& required(const char* key, const char* expected) const {
    const auto found = object_.find(key);
    if (found == object_.end()) {
      throw ValueError(
          fmt::format("{}: key \"{}\" is missing, expected {}", place_, key, expected));
    }
    return *found;
  }

  [[noreturn]] void fail(const char* key, const nlohmann::json& value, const char* expected) const {
    throw ValueError(fmt::format(
        "{}: \"{}\" is {}, expected {}", place_, key,
        value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), expected));
  }

  const nlohmann::json& object_;
  std::string place_;
};

}  // namespace kitchen::report
