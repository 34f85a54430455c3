#include "kitchen/base/error.h"
#include "kitchen/report/axis.h"
#include "kitchen/report/bar_chart.h"
#include "kitchen/report/chart_parts.h"
#include "kitchen/report/heat_map.h"
#include "kitchen/report/line_chart.h"
#include "kitchen/report/report_figures.h"
#include "support/xml_checker.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kitchen::report {
namespace {

using testing::XmlChecker;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

std::string labels_of(const AxisScale& scale, int wanted) {
  std::string text;
  for (const AxisTick& tick : scale.ticks(wanted)) text += (text.empty() ? "" : " ") + tick.label;
  return text;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void expect_drawable(const std::string& svg) {
  EXPECT_EQ(XmlChecker(svg).error(), "");
  for (const char* bad : {"nan", "NaN", "\"inf", "\"-inf", "e+"})
    EXPECT_FALSE(contains(svg, bad)) << bad;
}

// labels: report.AxisScale
TEST(AxisScale, TicksAreRoundAndLabelledWithTheDigitsTheyNeed) {
  EXPECT_EQ(labels_of({0.0, 400.0, false}, 8), "0 50 100 150 200 250 300 350 400");
  EXPECT_EQ(labels_of({-0.011, 0.021, false}, 3), "0 0.02");
  EXPECT_EQ(labels_of({1.8, 5.6, false}, 4), "2 3 4 5");
  EXPECT_EQ(labels_of({0.0, 200000.0, false}, 4), "0 50k 100k 150k 200k");
  EXPECT_EQ(labels_of({1e-4, 1.0, true}, 5), "1e-4 0.001 0.01 0.1 1");
  EXPECT_EQ(labels_of({0.3, 6.0, true}, 5), "0.5 1 2 5");
  EXPECT_EQ(labels_of({2.0, 3.0, true}, 5), "2.0 2.2 2.4 2.6 2.8 3.0");
  EXPECT_EQ(labels_of({0.0, 4e-4, false}, 4), "0 1e-4 2e-4 3e-4 4e-4");
}

// labels: report.AxisScale
TEST(AxisScale, FitsAnyValuesToARangeOfPositiveWidth) {
  constexpr double kMax = std::numeric_limits<double>::max();
  const std::vector<std::vector<double>> inputs = {
      {}, {kNaN, kInf}, {0.0}, {5.0, 5.0}, {-1e300}, {kMax, -kMax}, {1e-310}, {1e16, 1e16 + 2.0}};
  for (const std::vector<double>& values : inputs) {
    for (const bool is_log : {false, true}) {
      const AxisScale scale = AxisScale::fit(values, is_log, 0.05);
      EXPECT_LT(scale.low(), scale.high());
      EXPECT_LE(scale.ticks(5).size(), 12u);
      for (const double value : values) {
        EXPECT_TRUE(!scale.can_draw(value) || std::isfinite(scale.fraction(value))) << value;
      }
    }
  }
  EXPECT_LE(AxisScale(1e16, 1e16 + 2.0, false).ticks(5).size(), 11u);  // ticks closer than doubles
  EXPECT_DOUBLE_EQ(AxisScale(1.0, 100.0, true).fraction(10.0), 0.5);
  EXPECT_FALSE(AxisScale(1.0, 100.0, true).can_draw(0.0));
  EXPECT_THROW(AxisScale(1.0, 1.0, false), ValueError);
  EXPECT_THROW(AxisScale(0.0, 1.0, true), ValueError);
}

LineChart two_curves() {
  LineChart chart;
  chart.title = "loss";
  chart.series = {{"a <1>", {0, 1, 2, 3, 4}, {5, kNaN, 3, kInf, 1}, 0, false, false},
                  {"b", {0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, 1, true, false}};
  return chart;
}

// labels: report.line_chart
TEST(LineChart, DrawsGapsAndCountsThemInTheNote) {
  const std::string svg = line_chart(two_curves()).to_string();
  expect_drawable(svg);
  EXPECT_TRUE(contains(svg, "a &lt;1&gt;: 2 of 5 values not finite, shown as gaps."));
  // Curve a falls into three single points, drawn as markers; curve b is the only line of several
  // points.
  EXPECT_EQ(XmlChecker(svg).count("polyline"), 1);
  EXPECT_EQ(XmlChecker(svg).count("circle"), 3 + 1);  // and one in the legend
}

// labels: report.line_chart
TEST(LineChart, LogAxisLeavesOutWhatIsNotPositive) {
  LineChart chart = two_curves();
  chart.y.is_log = true;
  const std::string svg = line_chart(chart).to_string();
  expect_drawable(svg);
  EXPECT_TRUE(contains(svg, "b: 1 of 5 values not finite or not positive"));
}

// labels: report.line_chart
TEST(LineChart, NamesCurvesAtTheirEndsWithoutOverlap) {
  LineChart chart;
  chart.title = "same end";
  for (int i = 0; i < 4; ++i)
    chart.series.push_back({"run " + std::to_string(i), {0, 1}, {1, 2}, i, false, false});
  const std::string svg = line_chart(chart).to_string();
  std::vector<double> heights;
  for (std::size_t at = svg.find("font-weight=\"600\">run"); at != std::string::npos;
       at = svg.find("font-weight=\"600\">run", at + 1)) {
    const std::size_t y = svg.rfind(" y=\"", at) + 4;
    heights.push_back(std::stod(svg.substr(y)));
  }
  ASSERT_EQ(heights.size(), 4u);
  for (std::size_t i = 1; i < heights.size(); ++i) EXPECT_GE(heights[i] - heights[i - 1], 14.99);
}

// labels: report.line_chart
TEST(LineChart, ManyPointsAreThinnedWithoutLosingTheirPeak) {
  LineChart chart;
  chart.title = "long";
  LineSeries series{"a", {}, {}, 0, false, false};
  for (int i = 0; i < 100000; ++i) {
    series.x.push_back(i);
    series.y.push_back(i == 54321 ? 10.0 : std::sin(0.1 * i));
  }
  chart.series = {series};
  const std::string svg = line_chart(chart).to_string();
  EXPECT_LT(svg.size(), 60000u);
  // The peak is the highest point, so a twentieth of the range (the padding) below the top.
  const AxisScale scale = AxisScale::fit(series.y, false, 0.05);
  EXPECT_NEAR(scale.fraction(10.0), 1.0 - 0.05 / 1.1, 1e-9);
  const double top = 4.0 + 19.0 + 4.0 + 26.0;
  const double bottom = 380.0 - 44.0;
  const double peak = bottom - (bottom - top) * scale.fraction(10.0);
  EXPECT_TRUE(contains(svg, ',' + svg_number(peak) + ' ')) << peak;
}

// labels: report.line_chart
TEST(LineChart, RefusesUnequalLengthsAndTooSmallSizes) {
  LineChart chart = two_curves();
  chart.series[0].x.pop_back();
  EXPECT_THROW((void)line_chart(chart), ValueError);
  chart = two_curves();
  chart.width = 100.0;
  EXPECT_THROW((void)line_chart(chart), ValueError);
  chart = LineChart();
  chart.title = "nothing";
  expect_drawable(line_chart(chart).to_string());
}

// labels: report.bar_chart
TEST(BarChart, LengthsAreProportionalAndBadValuesHaveNoBar) {
  BarChart chart;
  chart.title = "time";
  chart.categories = {"gemm", "a & b", "none"};
  chart.series = {{"one", {4.0, 2.0, kNaN}, {}}, {"two", {1.0, -1.0, kInf}, {"1 s", "", ""}}};
  const std::string svg = bar_chart(chart).to_string();
  expect_drawable(svg);
  EXPECT_TRUE(contains(svg, "3 values are missing, not finite or negative"));
  EXPECT_TRUE(contains(svg, "a &amp; b"));
  std::vector<double> lengths;
  for (std::size_t at = svg.find("height=\"15\""); at != std::string::npos;
       at = svg.find("height=\"15\"", at + 1)) {
    lengths.push_back(std::stod(svg.substr(svg.rfind("width=\"", at) + 7)));
  }
  ASSERT_EQ(lengths.size(), 3u);
  // Lengths are rounded to 0.01.
  EXPECT_NEAR(lengths[0], 4.0 * lengths[1], 0.05);
  EXPECT_NEAR(lengths[0], 2.0 * lengths[2], 0.03);
  chart.series[0].values.pop_back();
  EXPECT_THROW((void)bar_chart(chart), ValueError);
}

// labels: report.heat_map
TEST(HeatMap, PrintsEveryNumberOnTheColourOfItsRank) {
  HeatMap map;
  map.title = "error";
  map.rows = {"fc1", "fc2 <x>"};
  map.columns = {"x\nfprop", "w"};
  map.values = {10.0, 20.0, kNaN, 15.0};
  map.is_dark_low = true;
  const std::string svg = heat_map(map).to_string();
  expect_drawable(svg);
  EXPECT_TRUE(contains(svg, "fill=\"" + ramp_color(1.0) + "\"><title>fc1, x fprop: 10.0</title>"));
  EXPECT_TRUE(contains(svg, "fill=\"" + ramp_color(0.0) + "\"><title>fc1, w: 20.0</title>"));
  EXPECT_TRUE(
      contains(svg, "fill=\"" + ramp_color(0.5) + "\"><title>fc2 &lt;x&gt;, w: 15.0</title>"));
  EXPECT_TRUE(contains(svg, "1 cell not measured or not finite"));
  map.values.pop_back();
  EXPECT_THROW((void)heat_map(map), ValueError);
  map = HeatMap();
  map.title = "empty";
  expect_drawable(heat_map(map).to_string());
}

// labels: report.chart_parts
TEST(ChartText, IsWrappedAndClippedAtCodePoints) {
  EXPECT_EQ(wrap_text("one two three", text_width("one two", 12), 12),
            (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrap_text("abcdefg h", text_width("abc", 12), 12),
            (std::vector<std::string>{"abc", "def", "g h"}));
  EXPECT_EQ(wrap_text("µµµµ", text_width("µµµ", 12), 12), (std::vector<std::string>{"µµµ", "µ"}));
  EXPECT_TRUE(wrap_text("", 100, 12).empty());
  const std::string clipped =
      clip_middle("0.self_attention.linear_qkv", text_width("123456789012345", 12), 12);
  EXPECT_EQ(clipped, "0.se…linear_qkv");
  for (int width = 0; width < 60; ++width) {
    const std::string text = clip_middle("µ≤𝛼µ≤𝛼µ≤𝛼", width, 12);
    EXPECT_EQ(XmlChecker("<a>" + text + "</a>").error(), "");
    EXPECT_TRUE(text_width(text, 12) <= width || text == "…") << text;
  }
}

// labels: report.smooth
TEST(Smooth, IsTheMeanOfTheFiniteNeighbours) {
  const std::vector<double> means = smooth({1, 2, 6, kNaN, 4}, 1);
  EXPECT_DOUBLE_EQ(means[0], 1.5);
  EXPECT_DOUBLE_EQ(means[1], 3.0);
  EXPECT_DOUBLE_EQ(means[2], 4.0);
  EXPECT_TRUE(std::isnan(means[3]));
  EXPECT_DOUBLE_EQ(means[4], 4.0);
  EXPECT_TRUE(smooth({}, 3).empty());
}

}  // namespace
}  // namespace kitchen::report
