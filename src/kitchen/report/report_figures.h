#pragma once

#include "kitchen/report/bar_chart.h"
#include "kitchen/report/heat_map.h"
#include "kitchen/report/line_chart.h"
#include "kitchen/report/run_summary.h"

#include <optional>
#include <string>
#include <vector>

/// Turns what was measured into charts. Every function takes runs with distinct names.
namespace kitchen::report {

/// A measured value over steps, one curve a run; runs that never measured it are left out.
using MetricField = std::optional<double> MetricPoint::*;
LineChart metric_chart(const std::vector<RunSummary>& runs, MetricField field,
                       const std::string& title, const std::string& label);

/// Puts over each curve, which becomes background, its mean over about 2 % of its points around
/// each point. Curves of fewer than 100 points stay as they are.
LineChart smoothed(LineChart chart);

/// Validation loss of each later run minus that of the first, at the steps that both measured.
LineChart difference_chart(const std::vector<RunSummary>& runs);

/// Mean over [i - half_window, i + half_window], cut at the ends; values that are not finite do not
/// count, and stay as they are in their own place.
std::vector<double> smooth(const std::vector<double>& values, int half_window);

/// SQNR by module (rows, in order of appearance) and by operand use (columns).
HeatMap quantization_map(const RunSummary& run);

/// Seconds by op, the longest first; ops beyond the twelfth are summed up.
BarChart op_time_chart(const std::vector<RunSummary>& runs);

/// The dotted prefix that all `modules` share, with its point; empty if there is none.
std::string common_prefix(const std::vector<std::string>& modules);

}  // namespace kitchen::report
