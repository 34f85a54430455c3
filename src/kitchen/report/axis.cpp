#include "kitchen/report/axis.h"

#include "kitchen/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kitchen::report {
namespace {

double round_step(double rough) {
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double lead = rough / power;
  return power * (lead <= 1.0 ? 1.0 : lead <= 2.0 ? 2.0 : lead <= 5.0 ? 5.0 : 10.0);
}

/// Digits after the point that a multiple of `step` needs.
int decimals_for(double step) {
  return std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 12);
}

}  // namespace

std::string tick_label(double value, double step) {
  const double size = std::fabs(value);
  if (size < step * 1e-6) return "0";
  if (step < 1e-3 && size < 1e-2) {
    const int exponent = static_cast<int>(std::floor(std::log10(size) + 1e-9));
    const double power = std::pow(10.0, exponent);
    return fmt::format("{:.{}f}e{}", value / power, decimals_for(step / power), exponent);
  }
  for (const auto& [unit, suffix] :
       {std::pair{1e9, "G"}, std::pair{1e6, "M"}, std::pair{1e3, "k"}}) {
    if (size >= unit && (size >= 1e4 || step >= 1e4)) {
      return fmt::format("{:.{}f}{}", value / unit, decimals_for(step / unit), suffix);
    }
  }
  return fmt::format("{:.{}f}", value, decimals_for(step));
}

AxisScale::AxisScale(double low, double high, bool is_log)
    : low_(low), high_(high), is_log_(is_log) {
  if (!(std::isfinite(low) && std::isfinite(high) && low < high && (!is_log || low > 0.0))) {
    throw ValueError(fmt::format("AxisScale: range {} to {}{}, expected finite low < high{}", low,
                                 high, is_log ? " (log)" : "", is_log ? " and low > 0" : ""));
  }
}

AxisScale AxisScale::fit(const std::vector<double>& values, bool is_log, double padding) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const double value : values) {
    if (!std::isfinite(value) || (is_log && value <= 0.0)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (!(low <= high)) return is_log ? AxisScale(0.1, 10.0, true) : AxisScale(0.0, 1.0, false);
  if (is_log) {
    // Subnormal numbers and the largest ones are left to the clamps: their ratio would lose all
    // digits.
    low = std::clamp(low, 1e-300, 1e300);
    high = std::clamp(high, 1e-300, 1e300);
    const double decades = std::log10(high) - std::log10(low);
    const double margin = decades < 1e-9 ? 0.5 : padding * decades;
    return {low * std::pow(10.0, -margin), high * std::pow(10.0, margin), true};
  }
  const double least = 1e-9 * std::max({std::fabs(low), std::fabs(high), 1e-290});
  // Halved before the subtraction, since the spread of two huge values may overflow.
  const double half_spread = high / 2.0 - low / 2.0;
  const double margin =
      half_spread <= least ? std::max(0.05 * std::fabs(low), 1e-3) : 2.0 * padding * half_spread;
  constexpr double kLimit = std::numeric_limits<double>::max() / 4.0;
  return {std::clamp(low - margin, -kLimit, kLimit / 2.0),
          std::clamp(high + margin, -kLimit / 2.0, kLimit), false};
}

bool AxisScale::can_draw(double value) const {
  return std::isfinite(value) && (!is_log_ || value > 0.0);
}

double AxisScale::fraction(double value) const {
  const double position =
      is_log_ ? (std::log(value) - std::log(low_)) / (std::log(high_) - std::log(low_))
              : (value - low_) / (high_ - low_);
  return std::clamp(position, -1.0, 2.0);
}

std::vector<AxisTick> AxisScale::ticks(int wanted) const {
  return is_log_ ? log_ticks(std::max(wanted, 2)) : linear_ticks(std::max(wanted, 2));
}

std::vector<AxisTick> AxisScale::linear_ticks(int wanted) const {
  const double step = round_step((high_ - low_) / wanted);
  std::vector<AxisTick> ticks;
  const double first = std::ceil(low_ / step - 1e-9);
  // Far from zero first + 1.0 may round to first; the integer counter advances all the same.
  for (int i = 0; (first + i) * step <= high_ + step * 1e-9; ++i) {
    const double value = (first + i) * step;
    ticks.push_back({value, tick_label(value, step)});
  }
  return ticks;
}

std::vector<AxisTick> AxisScale::log_ticks(int wanted) const {
  const double decades = std::log10(high_) - std::log10(low_);
  if (decades < 0.7) return linear_ticks(wanted);
  const int stride = std::max(1, static_cast<int>(std::ceil(decades / wanted)));
  const std::vector<double> leads =
      decades < 3.0 ? std::vector<double>{1.0, 2.0, 5.0} : std::vector<double>{1.0};
  std::vector<AxisTick> ticks;
  for (int k = static_cast<int>(std::floor(std::log10(low_))); k <= std::log10(high_);
       k += stride) {
    for (const double lead : leads) {
      const double value = lead * std::pow(10.0, k);
      if (value >= low_ * (1.0 - 1e-9) && value <= high_ * (1.0 + 1e-9)) {
        ticks.push_back({value, tick_label(value, value)});
      }
    }
  }
  return ticks;
}

}  // namespace kitchen::report
