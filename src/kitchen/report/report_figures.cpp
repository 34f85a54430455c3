#include "kitchen/report/report_figures.h"

#include "kitchen/report/report_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

namespace kitchen::report {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kMaxOps = 12;

LineSeries series_of(const RunSummary& run, MetricField field, int style) {
  LineSeries series{run.name, {}, {}, style, false, false};
  for (const MetricPoint& point : run.metrics) {
    if (!(point.*field)) continue;
    series.x.push_back(static_cast<double>(point.step));
    series.y.push_back(*(point.*field));
  }
  return series;
}

template <typename T>
std::size_t index_of(std::vector<T>& values, const T& value) {
  const auto found = std::find(values.begin(), values.end(), value);
  const auto index = static_cast<std::size_t>(found - values.begin());
  if (found == values.end()) values.push_back(value);
  return index;
}

/// The six uses of a linear layer in the order of a step, then whatever else was measured.
std::vector<std::string> column_order(const RunSummary& run) {
  constexpr std::array<const char*, 6> kUses = {"x\nfprop", "w\nfprop", "g\ndgrad",
                                                "w\ndgrad", "g\nwgrad", "x\nwgrad"};
  std::vector<std::string> found;
  for (const QuantizationError& error : run.quantization)
    index_of(found, error.operand + '\n' + error.gemm);
  std::vector<std::string> ordered;
  for (const char* use : kUses) {
    if (std::find(found.begin(), found.end(), use) != found.end()) ordered.emplace_back(use);
  }
  for (const std::string& use : found) index_of(ordered, use);
  return ordered;
}

std::map<std::string, double> seconds_by_op(const RunSummary& run) {
  std::map<std::string, double> seconds;
  for (const OpTime& time : run.op_times) seconds[time.op] += time.seconds;
  return seconds;
}

std::vector<std::string> ops_by_time(const std::vector<RunSummary>& runs) {
  std::map<std::string, double> longest;
  for (const RunSummary& run : runs) {
    for (const auto& [op, seconds] : seconds_by_op(run))
      longest[op] = std::max(longest[op], seconds);
  }
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [op, seconds] : longest) order.emplace_back(-seconds, op);
  std::sort(order.begin(), order.end());
  std::vector<std::string> ops;
  for (const auto& entry : order) ops.push_back(entry.second);
  return ops;
}

BarSeries op_bars(const RunSummary& run, const std::vector<std::string>& ops, std::size_t shown) {
  const std::map<std::string, double> seconds = seconds_by_op(run);
  double total = 0.0;
  for (const auto& entry : seconds) total += entry.second;
  std::vector<double> values(shown, kNaN);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const auto found = seconds.find(ops[i]);
    if (found == seconds.end()) continue;
    double& value = values[std::min(i, shown - 1)];
    value = (std::isnan(value) ? 0.0 : value) + found->second;
  }
  BarSeries bars{run.name, std::move(values), {}};
  for (const double value : bars.values) {
    bars.labels.push_back(fmt::format("{} s ({:.0f} %)", seconds_text(value),
                                      total > 0.0 ? 100.0 * value / total : 0.0));
  }
  return bars;
}

}  // namespace

std::vector<double> smooth(const std::vector<double>& values, int half_window) {
  std::vector<double> means(values.size(), kNaN);
  const auto size = static_cast<std::ptrdiff_t>(values.size());
  for (std::ptrdiff_t i = 0; i < size; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (!std::isfinite(values[at])) {
      means[at] = values[at];
      continue;
    }
    double sum = 0.0;
    int count = 0;
    const std::ptrdiff_t last = std::min(size - 1, i + half_window);
    for (std::ptrdiff_t j = std::max<std::ptrdiff_t>(0, i - half_window); j <= last; ++j) {
      const double value = values[static_cast<std::size_t>(j)];
      if (!std::isfinite(value)) continue;
      sum += value;
      ++count;
    }
    means[at] = sum / count;
  }
  return means;
}

LineChart metric_chart(const std::vector<RunSummary>& runs, MetricField field,
                       const std::string& title, const std::string& label) {
  LineChart chart;
  chart.title = title;
  chart.description = fmt::format("{} over training steps, one curve a run.", label);
  chart.x.label = "step";
  chart.y.label = label;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    LineSeries series = series_of(runs[i], field, static_cast<int>(i));
    if (!series.x.empty()) chart.series.push_back(std::move(series));
  }
  return chart;
}

LineChart smoothed(LineChart chart) {
  std::vector<LineSeries> all;
  for (LineSeries& series : chart.series) {
    const int half_window = static_cast<int>(series.y.size() / 100);
    if (half_window > 0) {
      LineSeries raw = series;
      raw.is_background = true;
      all.push_back(std::move(raw));
      series.y = smooth(series.y, half_window);
    }
    all.push_back(std::move(series));
  }
  chart.series = std::move(all);
  return chart;
}

LineChart difference_chart(const std::vector<RunSummary>& runs) {
  LineChart chart;
  if (runs.size() < 2) return chart;
  chart.title = "Validation loss minus that of " + runs[0].name;
  chart.description =
      "Difference of the validation losses over training steps; above zero is worse than the first "
      "run.";
  chart.x.label = "step";
  chart.y.label = "difference (nats a token)";
  std::map<std::int64_t, double> first;
  for (const MetricPoint& point : runs[0].metrics) {
    if (point.val_loss) first[point.step] = *point.val_loss;
  }
  LineSeries zero{runs[0].name, {}, {}, 0, false, false};
  for (std::size_t i = 1; i < runs.size(); ++i) {
    LineSeries series{runs[i].name, {}, {}, static_cast<int>(i), true, false};
    for (const MetricPoint& point : runs[i].metrics) {
      const auto found = first.find(point.step);
      if (!point.val_loss || found == first.end()) continue;
      series.x.push_back(static_cast<double>(point.step));
      series.y.push_back(*point.val_loss - found->second);
      zero.x.push_back(series.x.back());
    }
    if (!series.x.empty()) chart.series.push_back(std::move(series));
  }
  if (chart.series.empty()) return chart;
  const auto [low, high] = std::minmax_element(zero.x.begin(), zero.x.end());
  zero.x = {*low, *high};
  zero.y = {0.0, 0.0};
  chart.series.insert(chart.series.begin(), std::move(zero));
  return chart;
}

std::string common_prefix(const std::vector<std::string>& modules) {
  if (modules.size() < 2) return "";
  std::string prefix = modules[0];
  for (const std::string& module : modules) {
    const auto differs =
        std::mismatch(prefix.begin(), prefix.end(), module.begin(), module.end()).first;
    prefix.erase(differs, prefix.end());
  }
  const std::size_t point = prefix.rfind('.');
  return point == std::string::npos ? "" : prefix.substr(0, point + 1);
}

HeatMap quantization_map(const RunSummary& run) {
  HeatMap map;
  map.title = fmt::format("{}: SQNR by layer and operand", run.name);
  map.value_label = "SQNR (dB); dark = low = more error";
  map.is_dark_low = true;
  map.columns = column_order(run);
  std::vector<std::string> modules;
  for (const QuantizationError& error : run.quantization) index_of(modules, error.module);
  map.values.assign(modules.size() * map.columns.size(), kNaN);
  for (const QuantizationError& error : run.quantization) {
    const std::size_t row = index_of(modules, error.module);
    const std::size_t column = index_of(map.columns, error.operand + '\n' + error.gemm);
    map.values[row * map.columns.size() + column] = error.sqnr_db.value_or(kNaN);
  }
  const std::size_t cut = common_prefix(modules).size();
  for (const std::string& module : modules) map.rows.push_back(module.substr(cut));
  map.description = fmt::format(
      "{} layers by {} operand uses; the table below the figure holds the same numbers.",
      map.rows.size(), map.columns.size());
  return map;
}

BarChart op_time_chart(const std::vector<RunSummary>& runs) {
  BarChart chart;
  chart.title = "Seconds by op and run";
  chart.description = "Seconds in each kind of op, summed over the run, one bar a run.";
  chart.value_label = "seconds in all, and share of the run's measured op time";
  const std::vector<std::string> ops = ops_by_time(runs);
  const std::size_t shown = std::min(ops.size(), kMaxOps);
  chart.categories.assign(ops.begin(), ops.begin() + static_cast<std::ptrdiff_t>(shown));
  if (ops.size() > shown)
    chart.categories.back() = fmt::format("{} others", ops.size() - shown + 1);
  for (const RunSummary& run : runs) chart.series.push_back(op_bars(run, ops, shown));
  return chart;
}

}  // namespace kitchen::report
