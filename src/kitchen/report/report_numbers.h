#pragma once

#include "kitchen/report/run_summary.h"

#include <optional>
#include <string>

/// Numbers as the page prints them.
namespace kitchen::report {

/// `value` with `decimals` digits; "–" if absent, "not finite" for NaN and infinities.
std::string number_text(std::optional<double> value, int decimals);

/// "+0.42 %", "−0.10 %", "0.00 %"; "–" or "not finite" as above.
std::string percent_text(std::optional<double> percent);

/// A count with thin spaces between groups of three digits.
std::string count_text(std::int64_t count);

/// Seconds with three significant digits, at most three decimals.
std::string seconds_text(double seconds);

/// Bytes in the largest unit of 1000 that gives at least 1.
std::string bytes_text(std::uintmax_t bytes);

/// 100 (value / base - 1); absent if either is absent or `base` is zero.
std::optional<double> relative_percent(std::optional<double> value, std::optional<double> base);

/// Median of the finite measured values; absent if there is none.
std::optional<double> median_of(const RunSummary& run, std::optional<double> MetricPoint::*field);

}  // namespace kitchen::report
