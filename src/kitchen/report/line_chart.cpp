#include "kitchen/report/line_chart.h"

#include "kitchen/base/error.h"
#include "kitchen/report/axis.h"
#include "kitchen/report/chart_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kitchen::report {
namespace {

/// Where the curves go, and how values map there.
struct Plot {
  double left = 0.0, right = 0.0, top = 0.0, bottom = 0.0;
  AxisScale x;
  AxisScale y;

  [[nodiscard]] bool can_draw(double vx, double vy) const {
    return x.can_draw(vx) && y.can_draw(vy);
  }
  [[nodiscard]] SvgPoint at(double vx, double vy) const {
    return {left + (right - left) * x.fraction(vx), bottom - (bottom - top) * y.fraction(vy)};
  }
};

using Segment = std::vector<SvgPoint>;

void check(const LineChart& chart) {
  if (!(chart.width >= 240.0 && chart.height >= 200.0)) {
    throw ValueError(fmt::format("line_chart \"{}\": size {} x {}, expected at least 240 x 200",
                                 chart.title, chart.width, chart.height));
  }
  for (const LineSeries& series : chart.series) {
    if (series.x.size() != series.y.size()) {
      throw ValueError(
          fmt::format("line_chart \"{}\": series \"{}\" has {} x and {} y, expected as many",
                      chart.title, series.name, series.x.size(), series.y.size()));
    }
  }
}

AxisScale fit_axis(const LineChart& chart, bool is_x) {
  std::vector<double> values;
  for (const LineSeries& series : chart.series) {
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      const bool is_drawn = std::isfinite(series.x[i]) && std::isfinite(series.y[i]) &&
                            (!chart.x.is_log || series.x[i] > 0.0) &&
                            (!chart.y.is_log || series.y[i] > 0.0);
      if (is_drawn) values.push_back(is_x ? series.x[i] : series.y[i]);
    }
  }
  return AxisScale::fit(values, is_x ? chart.x.is_log : chart.y.is_log, is_x ? 0.0 : 0.05);
}

/// The drawable runs of a curve; a point that cannot be drawn ends one.
std::vector<Segment> segments_of(const LineSeries& series, const Plot& plot) {
  std::vector<Segment> segments(1);
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    if (plot.can_draw(series.x[i], series.y[i])) {
      segments.back().push_back(plot.at(series.x[i], series.y[i]));
    } else if (!segments.back().empty()) {
      segments.emplace_back();
    }
  }
  if (segments.back().empty()) segments.pop_back();
  return segments;
}

/// Keeps first, lowest, highest and last point of each pixel column, which look the same as all of
/// them.
Segment thin_out(const Segment& points, double plot_width) {
  if (static_cast<double>(points.size()) <= 2.0 * plot_width) return points;
  Segment kept;
  const auto lower = [](const SvgPoint& a, const SvgPoint& b) { return a.y < b.y; };
  for (auto begin = points.begin(); begin != points.end();) {
    const double column = std::floor(begin->x);
    const auto end = std::find_if(begin, points.end(),
                                  [&](const SvgPoint& p) { return std::floor(p.x) != column; });
    auto [low, high] = std::minmax_element(begin, end, lower);
    if (high < low) std::swap(low, high);
    auto former = points.end();
    for (const auto keep : {begin, low, high, std::prev(end)}) {
      if (keep != former) kept.push_back(*keep);
      former = keep;
    }
    begin = end;
  }
  return kept;
}

void draw_axes(SvgDocument& document, const LineChart& chart, const Plot& plot) {
  const SvgAttributes grid = {{"class", "k-grid"}, {"stroke", "#dedede"}};
  for (const AxisTick& tick : plot.y.ticks(static_cast<int>((plot.bottom - plot.top) / 38.0))) {
    const double y = plot.bottom - (plot.bottom - plot.top) * plot.y.fraction(tick.value);
    document.line({plot.left, y}, {plot.right, y}, grid);
    document.text({plot.left - 7.0, y + 4.0}, tick.label, text_style("k-soft", "end"));
  }
  double occupied = -1.0;
  for (const AxisTick& tick : plot.x.ticks(static_cast<int>((plot.right - plot.left) / 70.0))) {
    const double x = plot.left + (plot.right - plot.left) * plot.x.fraction(tick.value);
    document.line({x, plot.bottom}, {x, plot.bottom + 5.0},
                  {{"class", "k-axis"}, {"stroke", "#4d4d4d"}});
    const double half = text_width(tick.label, kFontSize) / 2.0;
    if (x - half < occupied) continue;
    document.text({x, plot.bottom + 18.0}, tick.label, text_style("k-soft", "middle"));
    occupied = x + half + 6.0;
  }
  document.line({plot.left, plot.bottom}, {plot.right, plot.bottom},
                {{"class", "k-axis"}, {"stroke", "#4d4d4d"}});
  document.text({4.0, plot.top - 10.0}, chart.y.label, text_style("k-soft"));
  document.text({(plot.left + plot.right) / 2.0, plot.bottom + 36.0}, chart.x.label,
                text_style("k-soft", "middle"));
}

void draw_series(SvgDocument& document, const LineSeries& series, const Plot& plot) {
  const SeriesStyle style = series_style(series.style);
  document.open_group({{"class", style.css_class}, {"color", style.color}});
  const std::vector<Segment> segments = segments_of(series, plot);
  SvgAttributes pen = {{"fill", "none"}, {"stroke", "currentColor"}, {"stroke-linejoin", "round"}};
  if (series.is_background) {
    pen.insert(pen.end(),
               {{"class", "k-background"}, {"stroke-opacity", "0.3"}, {"stroke-width", "1"}});
  } else {
    pen.insert(pen.end(), {{"stroke-width", "2"}, {"stroke-dasharray", style.dash}});
  }
  for (const Segment& segment : segments)
    document.polyline(thin_out(segment, plot.right - plot.left), pen);
  // Series start their sparse markers at different places, so that curves on top of each other show
  // both.
  double next = plot.left + (plot.right - plot.left) * (0.06 + 0.05 * (series.style % 3));
  for (const Segment& segment : segments) {
    for (const SvgPoint& point : segment) {
      const bool is_lonely = segment.size() == 1;
      if (series.is_background ? !is_lonely
                               : !(series.marks_points || is_lonely || point.x >= next))
        continue;
      draw_marker(document, point, style);
      next = point.x + (plot.right - plot.left) / 6.0;
    }
  }
  document.close_group();
}

struct EndLabel {
  const LineSeries* series = nullptr;
  double y = 0.0;
};

/// Labels at the height of the last point of each curve, moved apart so that no two overlap.
std::vector<EndLabel> place_labels(const LineChart& chart, const Plot& plot) {
  std::vector<EndLabel> labels;
  for (const LineSeries& series : chart.series) {
    const std::vector<Segment> segments = segments_of(series, plot);
    if (!series.is_background && !segments.empty())
      labels.push_back({&series, segments.back().back().y});
  }
  std::stable_sort(labels.begin(), labels.end(),
                   [](const EndLabel& a, const EndLabel& b) { return a.y < b.y; });
  for (std::size_t i = 1; i < labels.size(); ++i)
    labels[i].y = std::max(labels[i].y, labels[i - 1].y + 15.0);
  double limit = plot.bottom;
  for (auto label = labels.rbegin(); label != labels.rend(); ++label) {
    label->y = std::min(label->y, limit);
    limit = label->y - 15.0;
  }
  return labels;
}

void draw_end_labels(SvgDocument& document, const LineChart& chart, const Plot& plot) {
  for (const EndLabel& label : place_labels(chart, plot)) {
    const SeriesStyle style = series_style(label.series->style);
    document.open_group({{"class", style.css_class}, {"color", style.color}});
    document.text(
        {plot.right + 9.0, label.y + 4.0}, label.series->name,
        {{"fill", "currentColor"}, {"font-size", svg_number(kFontSize)}, {"font-weight", "600"}});
    document.close_group();
  }
}

/// What the note below the chart has to say about points that are left out.
std::string note_text(const LineChart& chart, const Plot& plot) {
  std::string note;
  for (const LineSeries& series : chart.series) {
    int left_out = 0;
    for (std::size_t i = 0; i < series.x.size(); ++i)
      left_out += !plot.can_draw(series.x[i], series.y[i]);
    if (left_out == 0) continue;
    note += fmt::format("{}{}: {} of {} values not finite{}, shown as gaps",
                        note.empty() ? "" : "; ", series.name, left_out, series.x.size(),
                        chart.x.is_log || chart.y.is_log ? " or not positive" : "");
  }
  return note.empty() ? note : note + ".";
}

double widest_tick(const AxisScale& scale) {
  double widest = 0.0;
  for (const AxisTick& tick : scale.ticks(8))
    widest = std::max(widest, text_width(tick.label, kFontSize));
  return widest;
}

struct Legend {
  std::vector<LegendEntry> entries;
  double end_label_width = 0.0;  // room for names at the ends of curves; 0: there are none
};

Legend plan_legend(const LineChart& chart) {
  Legend legend;
  for (const LineSeries& series : chart.series) {
    if (series.is_background) continue;
    legend.entries.push_back({series.name, series_style(series.style), ""});
    const double width = text_width(series.name, kFontSize) + 12.0;
    legend.end_label_width = std::max(legend.end_label_width, width);
  }
  // One curve is named by the title; long names would squeeze the plot, so the legend alone has
  // them.
  if (legend.entries.size() < 2) return {};
  if (legend.end_label_width > 0.22 * chart.width) legend.end_label_width = 0.0;
  return legend;
}

}  // namespace

SvgDocument line_chart(const LineChart& chart) {
  check(chart);
  const double inner = chart.width - 8.0;
  const Legend legend = plan_legend(chart);
  Plot plot{0.0, 0.0, 0.0, 0.0, fit_axis(chart, true), fit_axis(chart, false)};
  const std::string note = note_text(chart, plot);
  const std::vector<std::string> title = wrap_text(chart.title, inner, kTitleSize);
  const std::vector<std::string> note_lines = wrap_text(note, inner, kFontSize);
  // What a long title or legend takes is added, so that the plot keeps its height.
  const int further_lines = std::max(legend_rows(legend.entries, inner) - 1, 0) +
                            std::max(static_cast<int>(title.size()) - 1, 0);
  const double end = chart.height + kLineHeight * further_lines;
  SvgDocument document(chart.width, end + kLineHeight * static_cast<double>(note_lines.size()),
                       chart.title, chart.description + (note.empty() ? "" : " " + note), chart.id);
  draw_paper(document);
  const double legend_top = draw_title(document, title, 4.0) + 4.0;
  draw_legend(document, legend.entries, {4.0, legend_top}, inner);
  plot.top = legend_top + legend_rows(legend.entries, inner) * kLineHeight + 26.0;
  plot.bottom = end - 44.0;
  plot.left = 12.0 + widest_tick(plot.y);
  plot.right = chart.width - std::max(legend.end_label_width, 14.0);
  draw_axes(document, chart, plot);
  for (const bool background : {true, false}) {
    for (const LineSeries& series : chart.series) {
      if (series.is_background == background) draw_series(document, series, plot);
    }
  }
  if (legend.end_label_width > 0.0) draw_end_labels(document, chart, plot);
  draw_note(document, note_lines, end);
  return document;
}

}  // namespace kitchen::report
