#pragma once

#include "kitchen/report/svg.h"

#include <string>
#include <vector>

namespace kitchen::report {

/// One set of bars, one value a category; NaN where there is none.
struct BarSeries {
  std::string name;
  std::vector<double> values;
  std::vector<std::string> labels;  ///< text behind each bar; empty: the value itself
};

/// Horizontal bars from zero, grouped by category, told apart by hatching as well as by colour.
struct BarChart {
  std::string title;
  std::string description;
  std::string id = "bars";
  std::string value_label;  ///< what the length means, with the unit
  std::vector<std::string> categories;
  std::vector<BarSeries> series;
  double width = 720.0;
};

/// Draws `chart`; its height follows from the number of bars. Values that are not finite or below
/// zero get no bar and are counted in a note.
/// @throws ValueError if a series has another number of values (or labels, if any) than categories,
/// or
///         `width` < 240.
SvgDocument bar_chart(const BarChart& chart);

}  // namespace kitchen::report
