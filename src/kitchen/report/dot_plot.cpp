#include "kitchen/report/dot_plot.h"

#include "kitchen/base/error.h"
#include "kitchen/report/axis.h"
#include "kitchen/report/chart_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kitchen::report {
namespace {

constexpr double kDotPitch = 9.0;  // vertical distance of two dots of a row
constexpr double kRowGap = 30.0;
constexpr double kAxisHeight = 2.0 * kLineHeight + 8.0;
constexpr double kSwatch = 22.0;

void check(const DotPlot& plot) {
  if (plot.rows.empty())
    throw ValueError(fmt::format("dot_plot \"{}\": no row, expected at least one", plot.title));
  if (!(plot.width >= 240.0)) {
    throw ValueError(
        fmt::format("dot_plot \"{}\": width {}, expected at least 240", plot.title, plot.width));
  }
  const bool has_band = std::isfinite(plot.band_low) && std::isfinite(plot.band_high) &&
                        std::isfinite(plot.reference.value_or(0.0)) &&
                        plot.band_low <= plot.band_high;
  if (plot.reference && !has_band) {
    throw ValueError(
        fmt::format("dot_plot \"{}\": reference {} with band {} to {}, expected finite "
                    "low <= high",
                    plot.title, *plot.reference, plot.band_low, plot.band_high));
  }
}

AxisScale fit_axis(const DotPlot& plot) {
  std::vector<double> values;
  for (const DotRow& row : plot.rows) {
    values.insert(values.end(), row.values.begin(), row.values.end());
    values.push_back(row.mean);
  }
  if (plot.reference) values.insert(values.end(), {plot.band_low, plot.band_high});
  return AxisScale::fit(values, /*is_log=*/false, 0.06);
}

/// Where things are. Names stand left of their dots, or above them where the image is narrow.
struct Frame {
  AxisScale axis{0.0, 1.0, false};
  double left = 0.0, right = 0.0, top = 0.0, bottom = 0.0;
  double row_height = 0.0;
  double name_height = 0.0;  ///< of a name above its dots; 0: it stands beside them

  [[nodiscard]] double x(double value) const {
    return left + (right - left) * axis.fraction(value);
  }
  [[nodiscard]] double row_top(std::size_t row) const {
    return top + row_height * static_cast<double>(row);
  }
  [[nodiscard]] double middle(std::size_t row) const {
    return row_top(row) + name_height + (row_height - name_height) / 2.0;
  }
};

Frame lay_out(const DotPlot& plot, double top) {
  Frame frame;
  frame.axis = fit_axis(plot);
  double name_width = 0.0;
  std::size_t most_dots = 1;
  for (const DotRow& row : plot.rows) {
    name_width = std::max(name_width, text_width(row.name, kFontSize));
    most_dots = std::max(most_dots, row.values.size());
  }
  const bool is_beside = name_width < 0.3 * plot.width;
  frame.left = is_beside ? name_width + 20.0 : 8.0;
  frame.right = plot.width - 16.0;
  frame.name_height = is_beside ? 0.0 : kLineHeight;
  frame.row_height = kDotPitch * static_cast<double>(most_dots - 1) + kRowGap + frame.name_height;
  frame.top = top;
  frame.bottom = top + frame.row_height * static_cast<double>(plot.rows.size());
  return frame;
}

void draw_axis(SvgDocument& document, const DotPlot& plot, const Frame& frame) {
  const int wanted = static_cast<int>((frame.right - frame.left) / 80.0);
  for (const AxisTick& tick : frame.axis.ticks(wanted)) {
    const double x = frame.x(tick.value);
    document.line({x, frame.top}, {x, frame.bottom}, {{"class", "k-grid"}, {"stroke", "#d9d9d9"}});
    document.text({x, frame.bottom + kLineHeight}, tick.label, text_style("k-soft", "middle"));
  }
  document.line({frame.left, frame.bottom}, {frame.right, frame.bottom},
                {{"class", "k-axis"}, {"stroke", "#4d4d4d"}});
  document.text({frame.right, frame.bottom + 2.0 * kLineHeight},
                clip_middle(plot.value_label, frame.right - frame.left, kFontSize),
                text_style("k-soft", "end"));
}

/// Light, so that the grid shows through; its edges stay visible on a grey copy.
void draw_band(SvgDocument& document, SvgPoint corner, double width, double height) {
  document.rect(corner, width, height,
                {{"class", "k-ink"}, {"fill", "#1a1a1a"}, {"fill-opacity", "0.07"}});
  for (const double x : {corner.x, corner.x + width}) {
    document.line({x, corner.y}, {x, corner.y + height},
                  {{"class", "k-axis"}, {"stroke", "#4d4d4d"}, {"stroke-width", "0.6"}});
  }
}

void draw_reference_line(SvgDocument& document, SvgPoint from, SvgPoint to) {
  document.line(from, to,
                {{"class", "k-axis"},
                 {"stroke", "#4d4d4d"},
                 {"stroke-width", "1.6"},
                 {"stroke-dasharray", "5 4"}});
}

void draw_mean(SvgDocument& document, SvgPoint middle, double height) {
  document.rect({middle.x - 1.75, middle.y - height / 2.0}, 3.5, height,
                {{"class", "k-ink"}, {"fill", "#1a1a1a"}});
}

void draw_dot(SvgDocument& document, SvgPoint center) {
  const SeriesStyle style = series_style(0);
  document.open_group({{"class", style.css_class}, {"color", style.color}});
  draw_marker(document, center, style);
  document.close_group();
}

void draw_row(SvgDocument& document, const DotPlot& plot, const Frame& frame, std::size_t index) {
  const DotRow& row = plot.rows[index];
  const double middle = frame.middle(index);
  if (frame.name_height > 0.0) {
    document.text({frame.left, frame.row_top(index) + kFontSize + 2.0},
                  clip_middle(row.name, plot.width - 16.0, kFontSize), text_style("k-ink"));
  } else {
    document.text({frame.left - 12.0, middle + 4.0}, row.name, text_style("k-ink", "end"));
  }
  if (index > 0) {
    document.line({4.0, frame.row_top(index)}, {frame.right, frame.row_top(index)},
                  {{"class", "k-grid"}, {"stroke", "#d9d9d9"}});
  }
  const double dots_height = frame.row_height - frame.name_height - kRowGap;
  if (std::isfinite(row.mean)) draw_mean(document, {frame.x(row.mean), middle}, dots_height + 18.0);
  const double count = static_cast<double>(row.values.size());
  for (std::size_t i = 0; i < row.values.size(); ++i) {
    if (!std::isfinite(row.values[i])) continue;
    const double offset = kDotPitch * (static_cast<double>(i) - (count - 1.0) / 2.0);
    draw_dot(document, {frame.x(row.values[i]), middle + offset});
  }
}

using DrawSwatch = void (*)(SvgDocument&, SvgPoint middle);

struct Key {
  std::string name;
  DrawSwatch draw;
};

std::vector<Key> keys_of(const DotPlot& plot) {
  std::vector<Key> keys = {{plot.dot_name, [](SvgDocument& d, SvgPoint at) { draw_dot(d, at); }},
                           {"mean", [](SvgDocument& d, SvgPoint at) { draw_mean(d, at, 13.0); }}};
  if (plot.reference) {
    keys.push_back({plot.band_name, [](SvgDocument& d, SvgPoint at) {
                      draw_band(d, {at.x - 8.0, at.y - 7.0}, 16.0, 14.0);
                      draw_reference_line(d, {at.x, at.y - 7.0}, {at.x, at.y + 7.0});
                    }});
  }
  return keys;
}

/// Draws the legend from `top` down, or only measures it if there is no document.
/// @returns where the next element may start.
double draw_keys(SvgDocument* document, const DotPlot& plot, double top) {
  double x = 4.0;
  for (const Key& key : keys_of(plot)) {
    const double room = plot.width - 16.0 - kSwatch;
    const double width = kSwatch + std::min(text_width(key.name, kFontSize), room);
    if (x > 4.0 && x + width > plot.width - 8.0) {
      x = 4.0;
      top += kLineHeight;
    }
    if (document != nullptr) {
      key.draw(*document, {x + 8.0, top + 8.0});
      document->text({x + kSwatch, top + 12.0}, clip_middle(key.name, room, kFontSize),
                     text_style("k-ink"));
    }
    x += width + 14.0;
  }
  return top + kLineHeight;
}

std::string note_text(const DotPlot& plot) {
  long left_out = 0;
  for (const DotRow& row : plot.rows) {
    left_out += std::count_if(row.values.begin(), row.values.end(),
                              [](double value) { return !std::isfinite(value); });
  }
  if (left_out == 0) return "";
  return left_out == 1 ? "1 value is missing or not finite."
                       : fmt::format("{} values are missing or not finite.", left_out);
}

}  // namespace

SvgDocument dot_plot(const DotPlot& plot) {
  check(plot);
  const double inner = plot.width - 8.0;
  const std::string note = note_text(plot);
  const std::vector<std::string> title = wrap_text(plot.title, inner, kTitleSize);
  const std::vector<std::string> note_lines = wrap_text(note, inner, kFontSize);
  const double keys_top = 8.0 + (kLineHeight + 2.0) * static_cast<double>(title.size());
  const Frame frame = lay_out(plot, draw_keys(nullptr, plot, keys_top) + 10.0);
  const double end = frame.bottom + kAxisHeight;
  SvgDocument document(plot.width, end + kLineHeight * static_cast<double>(note_lines.size()),
                       plot.title, plot.description + (note.empty() ? "" : " " + note), plot.id);
  draw_paper(document);
  draw_title(document, title, 4.0);
  (void)draw_keys(&document, plot, keys_top);
  if (plot.reference) {
    const double low = frame.x(plot.band_low);
    draw_band(document, {low, frame.top}, frame.x(plot.band_high) - low, frame.bottom - frame.top);
  }
  draw_axis(document, plot, frame);
  if (plot.reference) {
    const double x = frame.x(*plot.reference);
    draw_reference_line(document, {x, frame.top}, {x, frame.bottom});
  }
  for (std::size_t i = 0; i < plot.rows.size(); ++i) draw_row(document, plot, frame, i);
  draw_note(document, note_lines, end);
  return document;
}

}  // namespace kitchen::report
