#include "kitchen/report/bar_chart.h"

#include "kitchen/base/error.h"
#include "kitchen/report/axis.h"
#include "kitchen/report/chart_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kitchen::report {
namespace {

constexpr double kBarHeight = 15.0;
constexpr double kBarPitch = 18.0;
constexpr double kGroupGap = 10.0;

bool can_draw(double value) {
  return std::isfinite(value) && value >= 0.0;
}

void check(const BarChart& chart) {
  if (!(chart.width >= 240.0)) {
    throw ValueError(
        fmt::format("bar_chart \"{}\": width {}, expected at least 240", chart.title, chart.width));
  }
  for (const BarSeries& series : chart.series) {
    const std::size_t wanted = chart.categories.size();
    if (series.values.size() != wanted ||
        (!series.labels.empty() && series.labels.size() != wanted)) {
      throw ValueError(fmt::format(
          "bar_chart \"{}\": series \"{}\" has {} values and {} labels, expected {} each "
          "(or no labels)",
          chart.title, series.name, series.values.size(), series.labels.size(), wanted));
    }
  }
}

std::string label_of(const BarSeries& series, std::size_t i) {
  if (!can_draw(series.values[i])) return "–";
  return series.labels.empty() ? fmt::format("{:.3g}", series.values[i]) : series.labels[i];
}

struct Frame {
  double label_end = 0.0;  // category names end here, 0: they stand above their bars
  double left = 0.0, right = 0.0, top = 0.0;
  double group_height = 0.0;
  double high = 1.0;  // value at `right`
};

Frame lay_out(const BarChart& chart) {
  Frame frame;
  double name_width = 0.0;
  double value_width = 0.0;
  for (const std::string& name : chart.categories)
    name_width = std::max(name_width, text_width(name, kFontSize));
  double high = 0.0;
  for (const BarSeries& series : chart.series) {
    for (std::size_t i = 0; i < series.values.size(); ++i) {
      if (can_draw(series.values[i])) high = std::max(high, series.values[i]);
      value_width = std::max(value_width, text_width(label_of(series, i), kFontSize));
    }
  }
  frame.high = high > 0.0 ? high : 1.0;
  if (name_width < 0.3 * chart.width) frame.label_end = 4.0 + name_width;
  frame.left = frame.label_end > 0.0 ? frame.label_end + 8.0 : 6.0;
  frame.right = std::max(chart.width - value_width - 12.0, frame.left + 40.0);
  frame.group_height = kBarPitch * static_cast<double>(chart.series.size()) + kGroupGap +
                       (frame.label_end > 0.0 ? 0.0 : kLineHeight);
  return frame;
}

void draw_bar(SvgDocument& document, const Frame& frame, double y, const BarSeries& series,
              std::size_t category, const std::string& fill) {
  double end = frame.left;
  if (can_draw(series.values[category])) {
    end += (frame.right - frame.left) * series.values[category] / frame.high;
    document.rect({frame.left, y}, end - frame.left, kBarHeight,
                  {{"fill", fill}, {"stroke", "currentColor"}});
  }
  document.text({end + 6.0, y + 12.0}, label_of(series, category), text_style("k-ink"));
}

void draw_groups(SvgDocument& document, const BarChart& chart, const Frame& frame,
                 const std::vector<LegendEntry>& legend) {
  for (std::size_t c = 0; c < chart.categories.size(); ++c) {
    double y = frame.top + static_cast<double>(c) * frame.group_height;
    if (frame.label_end > 0.0) {
      const double middle = y + kBarPitch * static_cast<double>(chart.series.size()) / 2.0;
      document.text({frame.label_end, middle + 3.0}, chart.categories[c],
                    text_style("k-ink", "end"));
    } else {
      document.text({frame.left, y + kFontSize},
                    clip_middle(chart.categories[c], chart.width - 12.0, kFontSize),
                    text_style("k-ink"));
      y += kLineHeight;
    }
    for (std::size_t s = 0; s < chart.series.size(); ++s) {
      document.open_group({{"class", legend[s].style.css_class}, {"color", legend[s].style.color}});
      draw_bar(document, frame, y + kBarPitch * static_cast<double>(s), chart.series[s], c,
               legend[s].fill);
      document.close_group();
    }
  }
  const double bottom =
      frame.top + frame.group_height * static_cast<double>(chart.categories.size()) - kGroupGap;
  document.line({frame.left, frame.top - 4.0}, {frame.left, std::max(bottom, frame.top) + 2.0},
                {{"class", "k-axis"}, {"stroke", "#4d4d4d"}});
}

std::string note_text(const BarChart& chart) {
  long left_out = 0;
  for (const BarSeries& series : chart.series) {
    left_out += std::count_if(series.values.begin(), series.values.end(),
                              [](double v) { return !can_draw(v); });
  }
  return left_out == 0
             ? ""
             : fmt::format("{} missing, not finite or negative (–).",
                           left_out == 1 ? "1 value is" : fmt::format("{} values are", left_out));
}

}  // namespace

SvgDocument bar_chart(const BarChart& chart) {
  check(chart);
  Frame frame = lay_out(chart);
  const double inner = chart.width - 8.0;
  const std::string note = note_text(chart);
  const std::vector<std::string> title = wrap_text(chart.title, inner, kTitleSize);
  const std::vector<std::string> note_lines = wrap_text(note, inner, kFontSize);
  std::vector<LegendEntry> legend;
  for (std::size_t s = 0; s < chart.series.size(); ++s) {
    legend.push_back({chart.series[s].name, series_style(static_cast<int>(s)), "currentColor"});
  }
  const int rows = chart.series.size() > 1 ? legend_rows(legend, inner) : 0;
  const double value_label_top =
      8.0 + (kLineHeight + 2.0) * static_cast<double>(title.size()) + rows * kLineHeight;
  frame.top = value_label_top + kLineHeight + 12.0;
  const double end =
      frame.top + frame.group_height * static_cast<double>(chart.categories.size()) + 2.0;
  SvgDocument document(chart.width, end + kLineHeight * static_cast<double>(note_lines.size()),
                       chart.title, chart.description + (note.empty() ? "" : " " + note), chart.id);
  draw_paper(document);
  for (std::size_t s = 1; s < legend.size(); ++s) {
    const int kind = static_cast<int>((s - 1) % 5) + 1;
    legend[s].fill = document.add_hatch(kind, legend[s].style.color, legend[s].style.css_class);
  }
  const double legend_top = draw_title(document, title, 4.0) + 4.0;
  if (rows > 0) draw_legend(document, legend, {4.0, legend_top}, inner);
  document.text({4.0, value_label_top + kFontSize}, chart.value_label, text_style("k-soft"));
  draw_groups(document, chart, frame, legend);
  draw_note(document, note_lines, end);
  return document;
}

}  // namespace kitchen::report
