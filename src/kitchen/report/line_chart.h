#pragma once

#include "kitchen/report/svg.h"

#include <string>
#include <vector>

namespace kitchen::report {

/// One curve. Points that cannot be drawn interrupt it and are counted in a note below the chart.
struct LineSeries {
  std::string name;
  std::vector<double> x;
  std::vector<double> y;
  int style = 0;               ///< index of its series_style
  bool marks_points = false;   ///< a marker on every point instead of a few along the curve
  bool is_background = false;  ///< light, thin, without marker, label and legend entry
};

struct ChartAxis {
  std::string label;  ///< with the unit
  bool is_log = false;
};

struct LineChart {
  std::string title;
  std::string description;  ///< for those who cannot see it: what is shown over what
  std::string id = "chart";
  ChartAxis x;
  ChartAxis y;
  std::vector<LineSeries> series;
  double width = 720.0;
  double height = 380.0;  ///< of a chart with one line each of title and legend; more add to it
};

/// Draws `chart` with round ticks, a legend, and the name of each curve at its end where there is
/// room.
/// @throws ValueError if a series has not as many x as y, or `width` < 240 or `height` < 200.
SvgDocument line_chart(const LineChart& chart);

}  // namespace kitchen::report
