#pragma once

#include "kitchen/report/svg.h"

#include <string>
#include <vector>

namespace kitchen::report {

/// Numbers by row and column, as colour and as text in every cell.
struct HeatMap {
  std::string title;
  std::string description;
  std::string id = "heat";
  std::string value_label;           ///< what the numbers are, with the unit
  std::vector<std::string> rows;     ///< names, top to bottom
  std::vector<std::string> columns;  ///< names, left to right; '\n' breaks a name into lines
  std::vector<double> values;        ///< [rows, columns], row-major; NaN where nothing was measured
  int decimals = 1;
  bool is_dark_low = false;  ///< dark cells are the low values, for measures where low is bad
  double width = 720.0;
};

/// Draws `map`; its height follows from the number of rows. Cells that are not finite have a dash
/// in a dashed frame and are counted in a note.
/// @throws ValueError if there are not rows x columns values, or `width` < 240.
SvgDocument heat_map(const HeatMap& map);

}  // namespace kitchen::report
