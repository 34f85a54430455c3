#include "kitchen/report/heat_map.h"

#include "kitchen/base/error.h"
#include "kitchen/report/chart_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kitchen::report {
namespace {

constexpr double kRowHeight = 24.0;
constexpr double kSmallFont = 11.0;

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  long not_finite = 0;
};

Range range_of(const std::vector<double>& values) {
  Range range;
  for (const double value : values) {
    if (std::isfinite(value)) {
      range.low = std::min(range.low, value);
      range.high = std::max(range.high, value);
    } else {
      ++range.not_finite;
    }
  }
  return range;
}

std::string color_of(const HeatMap& map, const Range& range, double value) {
  // Halved first, since the difference of two huge values may overflow.
  const double spread = range.high / 2.0 - range.low / 2.0;
  const double t = spread > 0.0 ? (value / 2.0 - range.low / 2.0) / spread : 0.5;
  return ramp_color(map.is_dark_low ? 1.0 - t : t);
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines(1);
  for (const char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  return lines;
}

struct Frame {
  double left = 0.0, top = 0.0, cell_width = 0.0;
};

std::string cell_text(const HeatMap& map, double value) {
  if (!std::isfinite(value)) return "–";
  const std::string text = fmt::format("{:.{}f}", value, map.decimals);
  return text.size() > 8 ? fmt::format("{:.2g}", value) : text;
}

void draw_cells(SvgDocument& document, const HeatMap& map, const Frame& frame, const Range& range) {
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    const double y = frame.top + kRowHeight * static_cast<double>(r);
    document.text({frame.left - 7.0, y + 16.0},
                  clip_middle(map.rows[r], frame.left - 11.0, kSmallFont),
                  text_style("k-ink", "end", kSmallFont));
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      const double value = map.values[r * map.columns.size() + c];
      const double x = frame.left + frame.cell_width * static_cast<double>(c);
      std::string column = map.columns[c];
      std::replace(column.begin(), column.end(), '\n', ' ');
      const bool is_finite = std::isfinite(value);
      const std::string color = is_finite ? color_of(map, range, value) : "none";
      const std::string text = cell_text(map, value);
      SvgAttributes paint = {{"fill", color}};
      if (!is_finite)
        paint.insert(paint.end(),
                     {{"class", "k-axis"}, {"stroke", "#4d4d4d"}, {"stroke-dasharray", "3 3"}});
      document.rect({x + 1.0, y + 1.0}, frame.cell_width - 2.0, kRowHeight - 2.0, paint,
                    fmt::format("{}, {}: {}", map.rows[r], column,
                                is_finite ? text : "not measured or not finite"));
      SvgAttributes style = text_style(is_finite ? "k-cell" : "k-ink", "middle", kSmallFont);
      if (is_finite) style[1].second = text_color_on(color);
      document.text({x + frame.cell_width / 2.0, y + 16.0}, text, style);
    }
  }
}

/// A strip of the ramp with both ends named: the key for readers of the colours.
void draw_key(SvgDocument& document, const HeatMap& map, const Range& range, double y) {
  if (!(range.low <= range.high)) return;
  const std::string low = cell_text(map, range.low);
  const double start = 4.0 + text_width(low, kSmallFont) + 6.0;
  constexpr int kSteps = 24;
  constexpr double kStep = 5.0;
  document.text({4.0, y + 11.0}, low, text_style("k-soft", "start", kSmallFont));
  for (int i = 0; i < kSteps; ++i) {
    const double t = (i + 0.5) / kSteps;
    document.rect(
        {start + i * kStep, y}, kStep, 13.0,
        {{"fill", ramp_color(map.is_dark_low ? 1.0 - t : t)}, {"shape-rendering", "crispEdges"}});
  }
  document.text({start + kSteps * kStep + 6.0, y + 11.0}, cell_text(map, range.high),
                text_style("k-soft", "start", kSmallFont));
}

void draw_column_names(SvgDocument& document, const HeatMap& map, const Frame& frame) {
  double font_size = kSmallFont;
  for (const std::string& column : map.columns) {
    for (const std::string& line : split_lines(column)) {
      const double room = (frame.cell_width - 6.0) / std::max(text_width(line, 1.0), 1.0);
      font_size = std::max(std::min(font_size, room), 8.0);
    }
  }
  for (std::size_t c = 0; c < map.columns.size(); ++c) {
    const std::vector<std::string> lines = split_lines(map.columns[c]);
    const double x = frame.left + frame.cell_width * (static_cast<double>(c) + 0.5);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const double up = 13.0 * static_cast<double>(lines.size() - 1 - i);
      document.text({x, frame.top - 7.0 - up}, lines[i], text_style("k-ink", "middle", font_size));
    }
  }
}

void check(const HeatMap& map) {
  if (!(map.width >= 240.0)) {
    throw ValueError(
        fmt::format("heat_map \"{}\": width {}, expected at least 240", map.title, map.width));
  }
  if (map.values.size() != map.rows.size() * map.columns.size()) {
    throw ValueError(fmt::format("heat_map \"{}\": {} values, expected {} rows x {} columns",
                                 map.title, map.values.size(), map.rows.size(),
                                 map.columns.size()));
  }
}

}  // namespace

SvgDocument heat_map(const HeatMap& map) {
  check(map);
  const Range range = range_of(map.values);
  const double inner = map.width - 8.0;
  const std::vector<std::string> title = wrap_text(map.title, inner, kTitleSize);
  const std::string note =
      range.not_finite == 0
          ? ""
          : fmt::format(
                "{} not measured or not finite (–).",
                range.not_finite == 1 ? "1 cell" : fmt::format("{} cells", range.not_finite));
  double name_width = 0.0;
  std::size_t name_lines = 1;
  for (const std::string& row : map.rows)
    name_width = std::max(name_width, text_width(row, kSmallFont));
  for (const std::string& column : map.columns)
    name_lines = std::max(name_lines, split_lines(column).size());

  Frame frame;
  frame.left = std::min(name_width + 12.0, 0.42 * map.width);
  const double columns = static_cast<double>(std::max<std::size_t>(map.columns.size(), 1));
  frame.cell_width = std::min((map.width - frame.left - 2.0) / columns, 90.0);
  const double label_top = 8.0 + (kLineHeight + 2.0) * static_cast<double>(title.size());
  frame.top = label_top + 48.0 + 13.0 * static_cast<double>(name_lines);
  const double end = frame.top + kRowHeight * static_cast<double>(map.rows.size()) + 6.0;
  SvgDocument document(map.width, end + (note.empty() ? 0.0 : kLineHeight), map.title,
                       map.description + (note.empty() ? "" : " " + note), map.id);
  draw_paper(document);
  draw_title(document, title, 4.0);
  document.text({4.0, label_top + kFontSize}, map.value_label, text_style("k-soft"));
  draw_key(document, map, range, label_top + 20.0);
  draw_column_names(document, map, frame);
  draw_cells(document, map, frame, range);
  if (!note.empty()) draw_note(document, {note}, end);
  return document;
}

}  // namespace kitchen::report
