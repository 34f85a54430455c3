#pragma once

#include "kitchen/report/palette.h"
#include "kitchen/report/svg.h"

#include <string>
#include <string_view>
#include <vector>

/// Pieces that the charts share. Lengths are in user units of the SVG.
namespace kitchen::report {

constexpr double kLineHeight = 17.0;  ///< distance of two lines of chart text
constexpr double kFontSize = 12.0;
constexpr double kTitleSize = 14.0;

/// Estimated width of `text` in a sans-serif font; on the wide side, since the viewer's font is
/// unknown.
double text_width(std::string_view text, double font_size);

/// Breaks `text` at spaces into lines of at most `width`; a longer word is broken where the line
/// ends.
std::vector<std::string> wrap_text(std::string_view text, double width, double font_size);

/// `text`, with an ellipsis for its middle where it is wider than `width`: names differ at their
/// ends.
std::string clip_middle(const std::string& text, double width, double font_size);

/// Attributes of chart text; `anchor` is start, middle or end.
SvgAttributes text_style(const std::string& css_class, const std::string& anchor = "start",
                         double font_size = kFontSize);

/// Fills the whole image with paper, so that a file by itself is readable on any ground.
void draw_paper(SvgDocument& document);

/// Draws wrapped lines from `top` down and returns where the next element may start.
double draw_title(SvgDocument& document, const std::vector<std::string>& lines, double top);
double draw_note(SvgDocument& document, const std::vector<std::string>& lines, double top);

/// Marker of a series in `currentColor`; a filled one has a paper-coloured rim that lifts it off
/// the lines.
void draw_marker(SvgDocument& document, SvgPoint center, const SeriesStyle& style);

/// How a legend shows a series: by its line and marker, or by the paint of its bars.
struct LegendEntry {
  std::string name;
  SeriesStyle style;
  std::string fill;  ///< paint of a bar; empty for a line
};

/// Rows that a legend of `entries` takes at `width`.
int legend_rows(const std::vector<LegendEntry>& entries, double width);
void draw_legend(SvgDocument& document, const std::vector<LegendEntry>& entries, SvgPoint corner,
                 double width);

}  // namespace kitchen::report
