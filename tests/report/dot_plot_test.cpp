#include "kitchen/report/dot_plot.h"
#include "kitchen/base/error.h"
#include "support/xml_checker.h"

#include <gtest/gtest.h>

#include <limits>
#include <regex>
#include <string>
#include <vector>

namespace kitchen::report {
namespace {

using testing::XmlChecker;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

DotPlot two_rows() {
  DotPlot plot;
  plot.title = "Losses";
  plot.description = "Losses by recipe.";
  plot.value_label = "loss (nats)";
  plot.dot_name = "one seed";
  plot.band_name = "mean of bf16 and its spread";
  plot.rows = {{"bf16", {2.0, 2.02}, 2.01}, {"fp8", {2.05, 2.09}, 2.07}};
  plot.reference = 2.01;
  plot.band_low = 1.99;
  plot.band_high = 2.03;
  return plot;
}

/// Numbers in the given attribute of all elements that match, in document order.
std::vector<double> attribute_of(const std::string& svg, const std::string& element,
                                 const std::string& attribute) {
  std::vector<double> values;
  const std::regex pattern("<" + element + " [^>]*\\b" + attribute + "=\"([-0-9.]+)\"");
  for (std::sregex_iterator at(svg.begin(), svg.end(), pattern), end; at != end; ++at)
    values.push_back(std::stod((*at)[1]));
  return values;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// labels: report.dot_plot
TEST(DotPlot, PlacesDotsByValueAndByIndex) {
  const std::string svg = dot_plot(two_rows()).to_string();
  EXPECT_EQ(XmlChecker(svg).error(), "");
  // The first circle is that of the legend.
  const std::vector<double> x = attribute_of(svg, "circle", "cx");
  const std::vector<double> y = attribute_of(svg, "circle", "cy");
  ASSERT_EQ(x.size(), 5u);
  // Equal steps of value are equal steps of x; svg_number keeps two decimals, so a ratio of two
  // distances is exact to 0.02 / 100.
  EXPECT_NEAR((x[3] - x[1]) / (x[2] - x[1]), 2.5, 1e-3);
  EXPECT_NEAR((x[4] - x[1]) / (x[2] - x[1]), 4.5, 1e-3);
  EXPECT_NEAR(y[2] - y[1], y[4] - y[3], 0.02);
  EXPECT_GT(y[2] - y[1], 0.0);
  EXPECT_GT(y[3], y[2]);
}

// labels: report.dot_plot
TEST(DotPlot, TheBandReachesFromItsLowToItsHighEnd) {
  const std::string svg = dot_plot(two_rows()).to_string();
  std::smatch band;
  // The last translucent rectangle; the first one is that of the legend.
  const std::regex pattern("<rect x=\"([0-9.]+)\"[^>]*width=\"([0-9.]+)\"[^>]*fill-opacity");
  std::string::const_iterator from = svg.begin();
  for (std::smatch found; std::regex_search(from, svg.end(), found, pattern);) {
    band = found;
    from = found.suffix().first;
  }
  ASSERT_EQ(band.size(), 3u);
  const std::vector<double> x = attribute_of(svg, "circle", "cx");
  const double unit = (x[2] - x[1]) / 0.02;
  EXPECT_NEAR(std::stod(band[1]), x[1] - 0.01 * unit, 0.05);
  EXPECT_NEAR(std::stod(band[2]), 0.04 * unit, 0.05);
}

// labels: report.dot_plot T03
TEST(DotPlot, LeavesOutAndCountsWhatIsNotFinite) {
  DotPlot plot = two_rows();
  plot.rows[1] = {"fp8", {kNaN, 2.09}, kNaN};
  const std::string svg = dot_plot(plot).to_string();
  EXPECT_EQ(attribute_of(svg, "circle", "cx").size(), 4u);
  EXPECT_TRUE(contains(svg, "1 value is missing or not finite."));
  EXPECT_FALSE(contains(svg, "nan"));
  plot.rows = {{"all lost", {kNaN, kNaN}, kNaN}};
  plot.reference.reset();
  EXPECT_EQ(XmlChecker(dot_plot(plot).to_string()).error(), "");
}

// labels: report.dot_plot
TEST(DotPlot, StaysReadableWithEqualValuesLongNamesAndNarrowPages) {
  DotPlot plot = two_rows();
  plot.rows = {{std::string(90, 'm'), {3.0, 3.0, 3.0}, 3.0}, {"a & <b>", {3.0}, 3.0}};
  plot.reference = plot.band_low = plot.band_high = 3.0;
  for (const double width : {240.0, 350.0, 860.0}) {
    plot.width = width;
    const SvgDocument document = dot_plot(plot);
    const std::string svg = document.to_string();
    EXPECT_EQ(XmlChecker(svg).error(), "");
    for (const double x : attribute_of(svg, "circle", "cx")) EXPECT_LT(x, width);
    for (const double y : attribute_of(svg, "circle", "cy")) EXPECT_LT(y, document.height());
  }
}

// labels: report.dot_plot
TEST(DotPlot, RefusesWhatItCannotDraw) {
  DotPlot plot = two_rows();
  plot.width = 100.0;
  EXPECT_THROW((void)dot_plot(plot), ValueError);
  plot = two_rows();
  plot.rows.clear();
  EXPECT_THROW((void)dot_plot(plot), ValueError);
  plot = two_rows();
  plot.band_low = 3.0;
  EXPECT_THROW((void)dot_plot(plot), ValueError);
  plot.band_low = kNaN;
  EXPECT_THROW((void)dot_plot(plot), ValueError);
}

}  // namespace
}  // namespace kitchen::report
