#include "kitchen/report/report_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace kitchen::report {

std::string number_text(std::optional<double> value, int decimals) {
  if (!value) return "–";
  if (!std::isfinite(*value)) return "not finite";
  if (std::fabs(*value) >= 1e9) return fmt::format("{:.3g}", *value);
  return fmt::format("{:.{}f}", *value, decimals);
}

std::string percent_text(std::optional<double> percent) {
  if (!percent || !std::isfinite(*percent)) return number_text(percent, 2);
  const std::string size = fmt::format("{:.2f} %", std::fabs(*percent));
  if (size == "0.00 %") return size;
  return (*percent < 0.0 ? "−" : "+") + size;
}

std::string count_text(std::int64_t count) {
  std::string text = std::to_string(count);
  constexpr const char* kThinSpace = "\u2009";
  for (int at = static_cast<int>(text.size()) - 3; at > (count < 0 ? 1 : 0); at -= 3) {
    text.insert(static_cast<std::size_t>(at), kThinSpace);
  }
  return text;
}

std::string seconds_text(double seconds) {
  return fmt::format("{:.{}f}", seconds,
                     seconds >= 100.0  ? 0
                     : seconds >= 10.0 ? 1
                     : seconds >= 1.0  ? 2
                                       : 3);
}

std::string bytes_text(std::uintmax_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "kB", "MB", "GB", "TB"};
  auto size = static_cast<double>(bytes);
  int unit = 0;
  while (size >= 1000.0 && unit < 4) {
    size /= 1000.0;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", size, unit == 0 ? 0 : 1, kUnits[unit]);
}

std::optional<double> relative_percent(std::optional<double> value, std::optional<double> base) {
  if (!value || !base || *base == 0.0) return std::nullopt;
  return 100.0 * (*value / *base - 1.0);
}

std::optional<double> median_of(const RunSummary& run, std::optional<double> MetricPoint::*field) {
  std::vector<double> values;
  for (const MetricPoint& point : run.metrics) {
    if (point.*field && std::isfinite(*(point.*field))) values.push_back(*(point.*field));
  }
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

}  // namespace kitchen::report
