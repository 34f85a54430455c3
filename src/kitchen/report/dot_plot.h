#pragma once

#include "kitchen/report/svg.h"

#include <optional>
#include <string>
#include <vector>

namespace kitchen::report {

/// Repeated measurements of one thing.
struct DotRow {
  std::string name;
  std::vector<double> values;  ///< one dot each; NaN where there is none
  double mean = 0.0;           ///< marked by a bar; NaN: no mark
};

/// Measured values along one axis that does not start at zero, one row a thing. Bars from zero
/// would hide differences that are small against the values.
struct DotPlot {
  std::string title;
  std::string description;
  std::string id = "dots";
  std::string value_label;  ///< what the axis means, with the unit
  std::string dot_name;     ///< what one dot is, for the legend: "one seed"
  std::string band_name;    ///< what line and band are, for the legend
  std::vector<DotRow> rows;
  std::optional<double> reference;  ///< a dashed line across all rows
  double band_low = 0.0;            ///< with a reference: the band around it, in values
  double band_high = 0.0;
  double width = 720.0;
};

/// Draws `plot`; its height follows from the number of rows. Dots of one index stand at the same
/// height within their rows, so that equal values do not hide each other. Values that are not
/// finite are counted in a note.
/// @throws ValueError if there is no row, the band is not finite low <= high, or `width` < 240.
SvgDocument dot_plot(const DotPlot& plot);

}  // namespace kitchen::report
