#pragma once

#include <string>

namespace kitchen::report {

enum class MarkerShape { circle, square, triangle, diamond, cross, inverted_triangle };

/// How one series is drawn. Dash and marker alone tell series apart, so that grey print is enough.
struct SeriesStyle {
  std::string color;      ///< "#rrggbb", at least 4.5:1 against white, apart under colour blindness
  std::string css_class;  ///< class by which a page replaces the colour, e.g. on a dark ground
  std::string dash;       ///< value of stroke-dasharray; "none" for a solid line
  MarkerShape marker = MarkerShape::circle;
  bool is_hollow = false;  ///< an open marker leaves a filled one below it visible
};

/// Style of series `index` >= 0. Any two of the first 36 differ in dash or marker.
SeriesStyle series_style(int index);

/// Colours whose lightness falls evenly from light yellow (`t` = 0) to dark blue (`t` = 1), as
/// "#rrggbb".
///
/// Lightness alone orders them, so a grey copy keeps the order. `t` is clamped to [0, 1].
/// @source Björn Ottosson, "A perceptual color space for image processing", 2020: the OKLab
/// matrices.
std::string ramp_color(double t);

/// Relative luminance in [0, 1] of "#rrggbb".
/// @source Web Content Accessibility Guidelines (WCAG) 2.2, definition of relative luminance.
double relative_luminance(const std::string& color);

/// "#000000" or "#ffffff", whichever contrasts more with the ground `color`.
std::string text_color_on(const std::string& color);

}  // namespace kitchen::report
