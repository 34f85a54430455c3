#include "kitchen/base/error.h"
#include "kitchen/config/yaml.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

namespace kitchen {

namespace {

template <std::size_t N>
bool is_one_of(std::string_view text, const char* const (&words)[N]) {
  for (const char* word : words) {
    if (text == word) return true;
  }
  return false;
}

bool all_in(std::string_view text, std::string_view allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

constexpr std::string_view kDigits = "0123456789";

std::int64_t to_integer(std::string_view digits, int base, const std::string& text) {
  std::int64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, base);
  if (error != std::errc() || stop != end) {
    throw ValueError("integer " + text + " does not fit 64 bits");
  }
  return value;
}

/// [-+]?[0-9]+, 0o[0-7]+ and 0x[0-9a-fA-F]+.
std::optional<std::int64_t> as_integer(const std::string& text) {
  std::string_view view = text;
  if (view.substr(0, 2) == "0o" && all_in(view.substr(2), "01234567")) {
    return to_integer(view.substr(2), 8, text);
  }
  if (view.substr(0, 2) == "0x" && all_in(view.substr(2), "0123456789abcdefABCDEF")) {
    return to_integer(view.substr(2), 16, text);
  }
  if (!view.empty() && view.front() == '+') {
    view.remove_prefix(1);
    return all_in(view, kDigits) ? std::optional(to_integer(view, 10, text)) : std::nullopt;
  }
  const bool negative = !view.empty() && view.front() == '-';
  if (!all_in(view.substr(negative ? 1 : 0), kDigits)) return std::nullopt;
  return to_integer(view, 10, text);
}

/// Removes a run of digits from the front and returns its length.
std::size_t take_digits(std::string_view& view) {
  const std::size_t stop = view.find_first_not_of(kDigits);
  const std::size_t count = stop == std::string_view::npos ? view.size() : stop;
  view.remove_prefix(count);
  return count;
}

/// (\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?, without sign.
bool is_float_syntax(std::string_view view) {
  const std::size_t whole = take_digits(view);
  std::size_t fraction = 0;
  if (!view.empty() && view.front() == '.') {
    view.remove_prefix(1);
    fraction = take_digits(view);
  }
  if (whole + fraction == 0) return false;
  if (view.empty()) return true;
  if (view.front() != 'e' && view.front() != 'E') return false;
  view.remove_prefix(1);
  if (!view.empty() && (view.front() == '-' || view.front() == '+')) view.remove_prefix(1);
  return take_digits(view) > 0 && view.empty();
}

std::optional<double> as_float(const std::string& text) {
  std::string_view view = text;
  if (is_one_of(view, {".nan", ".NaN", ".NAN"})) return std::numeric_limits<double>::quiet_NaN();
  double sign = 1.0;
  if (!view.empty() && (view.front() == '-' || view.front() == '+')) {
    sign = view.front() == '-' ? -1.0 : 1.0;
    view.remove_prefix(1);
  }
  if (is_one_of(view, {".inf", ".Inf", ".INF"}))
    return sign * std::numeric_limits<double>::infinity();
  if (!is_float_syntax(view)) return std::nullopt;
  // from_chars, since strtod reads the decimal point of the user's locale.
  double value = 0.0;
  const auto result = std::from_chars(view.data(), view.data() + view.size(), value);
  if (result.ec != std::errc()) throw ValueError("float " + text + " does not fit 64 bits");
  return sign * value;
}

}  // namespace

ConfigValue resolve_plain_scalar(const std::string& text) {
  if (text.empty() || is_one_of(text, {"~", "null", "Null", "NULL"})) return nullptr;
  if (is_one_of(text, {"true", "True", "TRUE", "yes", "Yes", "YES"})) return true;
  if (is_one_of(text, {"false", "False", "FALSE", "no", "No", "NO"})) return false;
  if (const auto integer = as_integer(text)) return *integer;
  if (const auto number = as_float(text)) return *number;
  return text;
}

}  // namespace kitchen
