#include "kitchen/report/svg.h"

#include "kitchen/base/error.h"
#include "kitchen/report/palette.h"
#include "kitchen/report/xml_escape.h"
#include "support/xml_checker.h"

#include <gtest/gtest.h>

#include <limits>

namespace kitchen::report {
namespace {

using testing::XmlChecker;

// labels: report.xml_escape
TEST(XmlEscape, ReplacesMarkupAndWhatXmlForbids) {
  EXPECT_EQ(xml_escape("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
  EXPECT_EQ(xml_escape("µ ≤ 𝛼\n\t"), "µ ≤ 𝛼\n\t");
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(xml_escape(std::string("\x00\x1B", 2)), bad + bad);
  EXPECT_EQ(xml_escape("\xC3("), bad + "(");                         // lead byte without its second
  EXPECT_EQ(xml_escape("\xE2\x82"), bad + bad);                      // cut off at the end
  EXPECT_EQ(xml_escape("\xC0\x80"), bad + bad);                      // overlong zero
  EXPECT_EQ(xml_escape("\xE0\x83\xBF"), bad + bad + bad);            // overlong U+00FF
  EXPECT_EQ(xml_escape("\xED\xA0\x80"), bad + bad + bad);            // surrogate
  EXPECT_EQ(xml_escape("\xF4\x90\x80\x80"), bad + bad + bad + bad);  // above U+10FFFF
  EXPECT_EQ(xml_escape("\xEF\xBF\xBF"), bad + bad + bad);            // U+FFFF is no character
  EXPECT_EQ(count_code_points("aµ≤𝛼"), 4);
}

// labels: report.SvgDocument
TEST(SvgDocument, IsWellFormedAndNamedForScreenReaders) {
  SvgDocument document(200, 100, "a < b & \"c\"", "what it <shows>", "pic-1");
  document.open_group({{"class", "k-c0"}});
  document.line({0, 0}, {10.5, 1.0 / 3.0}, {{"stroke", "black"}});
  document.polyline({{0, 0}}, {});
  document.rect({1, 2}, 3, 4, {{"fill", document.add_hatch(1, "#0072b2", "k-c0")}}, "cell <1>");
  document.close_group();
  document.text({5, 5}, "x > y", {});
  const std::string svg = document.to_string();
  const XmlChecker checker(svg);
  EXPECT_EQ(checker.error(), "");
  EXPECT_EQ(checker.count("line"), 1);
  EXPECT_EQ(checker.count("polyline"), 0);  // one point is no line
  EXPECT_EQ(checker.count("title"), 2);
  EXPECT_NE(svg.find("viewBox=\"0 0 200 100\""), std::string::npos);
  EXPECT_NE(svg.find("role=\"img\" aria-labelledby=\"pic-1-title pic-1-desc\""), std::string::npos);
  EXPECT_NE(svg.find("x2=\"10.5\" y2=\"0.33\""), std::string::npos);
  EXPECT_NE(svg.find("xmlns=\"http://www.w3.org/2000/svg\""), std::string::npos);
  EXPECT_EQ(document.to_inline_string().find("http"), std::string::npos);
}

// labels: report.SvgDocument
TEST(SvgDocument, RefusesWhatNoViewerCanDraw) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  EXPECT_THROW((void)svg_number(std::numeric_limits<double>::quiet_NaN()), ValueError);
  EXPECT_THROW((void)svg_number(-kInf), ValueError);
  EXPECT_EQ(svg_number(-0.001), "0");
  EXPECT_EQ(svg_number(100.0), "100");
  EXPECT_THROW(SvgDocument(0, 10, "t", "d", "id"), ValueError);
  EXPECT_THROW(SvgDocument(10, kInf, "t", "d", "id"), ValueError);
  EXPECT_THROW(SvgDocument(10, 10, "", "d", "id"), ValueError);
  EXPECT_THROW(SvgDocument(10, 10, "t", "d", "a\"b"), ValueError);
  SvgDocument document(10, 10, "t", "d", "id");
  EXPECT_THROW(document.text({0, 0}, "x", {{"on click", "y"}}), ValueError);
  EXPECT_THROW(document.close_group(), AssertionError);
  document.open_group({});
  EXPECT_THROW((void)document.to_string(), AssertionError);
}

// labels: report.palette
TEST(Palette, RampFallsInLuminanceAndSeriesContrastWithPaper) {
  double former = 2.0;
  for (int i = 0; i <= 100; ++i) {
    const double luminance = relative_luminance(ramp_color(i / 100.0));
    EXPECT_LT(luminance, former) << i;
    former = luminance;
  }
  EXPECT_EQ(ramp_color(-1.0), ramp_color(0.0));
  EXPECT_DOUBLE_EQ(relative_luminance("#ffffff"), 1.0);
  EXPECT_DOUBLE_EQ(relative_luminance("#000000"), 0.0);
  EXPECT_EQ(text_color_on(ramp_color(0.0)), "#000000");
  EXPECT_EQ(text_color_on(ramp_color(1.0)), "#ffffff");
  for (int i = 0; i < 36; ++i) {
    const SeriesStyle style = series_style(i);
    EXPECT_GE(1.05 / (relative_luminance(style.color) + 0.05), 4.5) << style.color;
    for (int j = 0; j < i; ++j) {
      const SeriesStyle other = series_style(j);
      EXPECT_TRUE(style.dash != other.dash || style.marker != other.marker) << i << ' ' << j;
    }
  }
}

// labels: report.XmlChecker
TEST(XmlChecker, FindsTheUsualDefects) {
  EXPECT_EQ(XmlChecker("<a b=\"c\"><d/>&amp;</a>").error(), "");
  for (const char* text :
       {"<a>", "<a></b>", "<a b=c/>", "<a>&</a>", "<a>&nbsp;</a>", "<a b=\"1\" b=\"2\"/>", "a < b",
        "<a id=\"x\"/><b id=\"x\"/>", "<a href=\"#x\"/>", "<a>\x01</a>", "<a b=\"<\"/>"}) {
    EXPECT_NE(XmlChecker(text).error(), "") << text;
  }
}

}  // namespace
}  // namespace kitchen::report
