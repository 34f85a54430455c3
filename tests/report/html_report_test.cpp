#include "kitchen/report/html_report.h"

#include "kitchen/base/error.h"
#include "kitchen/report/run_summary.h"
#include "report/fake_run.h"
#include "support/xml_checker.h"

#include <gtest/gtest.h>

namespace kitchen::report {
namespace {

using testing::FakeRun;
using testing::TemporaryFolder;
using testing::XmlChecker;

std::vector<RunSummary> two_runs(const TemporaryFolder& folder) {
  testing::write_fake_run({}, folder.path() / "bf16");
  FakeRun quantized{"fp8 blockwise", 0.012, 9600.0, 400, 4, true, 2};
  testing::write_fake_run(quantized, folder.path() / "fp8");
  return {read_run((folder.path() / "bf16").string()), read_run((folder.path() / "fp8").string())};
}

MetricPoint validation(std::int64_t step, double loss) {
  MetricPoint point;
  point.step = step;
  point.val_loss = loss;
  return point;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// labels: report.render_report
TEST(HtmlReport, PageOfTwoRunsIsBalancedLabelledAndComplete) {
  const TemporaryFolder folder;
  const std::string page = render_report(two_runs(folder));
  testing::write_file(std::string(KITCHEN_BINARY_DIR) + "/report_example/report.html", page);
  const XmlChecker checker(page);
  EXPECT_EQ(checker.error(), "");
  EXPECT_EQ(checker.count("h1"), 1);
  EXPECT_EQ(checker.count("figure"), 7);  // three losses, norm, rate, one heat map, op times
  EXPECT_EQ(checker.count("svg"), 14);    // each figure for wide and for narrow pages
  EXPECT_EQ(checker.count("figcaption"), checker.count("figure"));
  EXPECT_EQ(checker.count("caption"), checker.count("table"));
  EXPECT_TRUE(contains(page, "class=\"skip\" href=\"#main\""));
  EXPECT_TRUE(contains(page, "<html lang=\"en\">"));
  for (const char* id : {"results", "loss", "course", "quantization", "time", "samples", "settings",
                         "glossary", "files"}) {
    EXPECT_TRUE(contains(page, std::string("href=\"#") + id + "\"")) << id;
  }
}

// labels: report.render_report
TEST(HtmlReport, FetchesNothingAndRunsNoScript) {
  const TemporaryFolder folder;
  const std::string page = render_report(two_runs(folder));
  for (const char* forbidden :
       {"http://", "https://", "//cdn", "<script", "@import", "src=", "<link", "url(h"}) {
    EXPECT_FALSE(contains(page, forbidden)) << forbidden;
  }
  EXPECT_TRUE(contains(page, "default-src 'none'"));
  EXPECT_FALSE(contains(page, folder.path().string()))
      << "the page must not name the machine's folders";
}

// labels: report.render_report
TEST(HtmlReport, TellsFinalLossPerplexityAndDifferenceToTheFirstRun) {
  RunSummary first;
  first.name = "bf16";
  first.metrics = {validation(0, 5.5), validation(100, 2.0)};
  RunSummary second = first;
  second.name = "fp8";
  second.metrics.back().val_loss = 2.05;
  second.settings = {{"recipe", "mx <fp8> & \"more\""}};
  const std::string page = render_report({first, second});
  EXPECT_EQ(XmlChecker(page).error(), "");
  EXPECT_TRUE(contains(
      page, "fp8 ends at a validation loss of 2.0500 after 100 steps, +2.50 % against bf16."));
  EXPECT_TRUE(contains(page, "<td class=\"number\">7.389</td>"));  // e^2
  EXPECT_TRUE(contains(page, "<td class=\"number\">7.768</td>"));  // e^2.05
  EXPECT_TRUE(contains(page, "<td class=\"number\">+2.50 %</td>"));
  EXPECT_TRUE(contains(page, "mx &lt;fp8&gt; &amp; &quot;more&quot;"));
  EXPECT_TRUE(contains(page, "<td>differs</td>"));
}

// labels: report.render_report
TEST(HtmlReport, DivergedRunShowsGapsAndNoNaN) {
  RunSummary run;
  run.name = "unstable";
  for (int step = 0; step < 10; ++step) {
    MetricPoint point = validation(step, step < 6 ? 3.0 - 0.1 * step : std::nan(""));
    point.train_loss = point.val_loss;
    point.grad_norm = step == 4 ? std::numeric_limits<double>::infinity() : 1.0 + step;
    run.metrics.push_back(point);
  }
  const std::string page = render_report({run});
  EXPECT_EQ(XmlChecker(page).error(), "");
  EXPECT_TRUE(
      contains(page, "unstable diverged: after 9 steps its validation loss is not finite."));
  EXPECT_TRUE(contains(page, "unstable: 4 of 10 values not finite, shown as gaps."));
  EXPECT_TRUE(
      contains(page, "unstable: 1 of 10 values not finite or not positive, shown as gaps."));
  for (const char* bad : {"nan", "NaN", "\"inf", "-inf"}) EXPECT_FALSE(contains(page, bad)) << bad;
}

// labels: report.render_report
TEST(HtmlReport, RunsThatSawDifferentTokensAreFlaggedAndEqualNamesNumbered) {
  RunSummary run;
  run.name = "a";
  run.metrics = {validation(100, 2.0)};
  RunSummary shorter = run;
  shorter.metrics[0].step = 50;
  const std::string page = render_report({run, shorter});
  EXPECT_TRUE(contains(page, "The runs differ in steps or tokens"));
  EXPECT_TRUE(contains(
      page, "a (2) ends at a validation loss of 2.0000 after 50 steps."));  // no difference told
  EXPECT_FALSE(contains(render_report({run, run}), "The runs differ in steps or tokens"));
}

// labels: report.render_report
TEST(HtmlReport, RunWithoutAnyMeasurementStillGivesAPage) {
  RunSummary run;
  run.name = "empty";
  const std::string page = render_report({run});
  EXPECT_EQ(XmlChecker(page).error(), "");
  EXPECT_TRUE(contains(page, "empty measured no validation loss."));
  EXPECT_EQ(XmlChecker(page).count("figure"), 0);
  EXPECT_THROW((void)render_report({}), ValueError);
}

// labels: report.render_report
TEST(HtmlReport, FiveRunsWithLongNamesStayApart) {
  const TemporaryFolder folder;
  std::vector<RunSummary> runs;
  for (int i = 0; i < 5; ++i) {
    const std::filesystem::path path =
        folder.path() / ("gpt-4-layers-nvfp4-stochastic-rounding-seed-" + std::to_string(i));
    testing::write_fake_run(
        {"nvfp4", 0.05 * i, 9000.0, 60 + 10 * i, 12, i > 2, static_cast<unsigned>(i)}, path);
    runs.push_back(read_run(path.string()));
  }
  for (int step = 20; step < 50; ++step)
    runs[1].metrics[static_cast<std::size_t>(step)].train_loss = std::nan("");
  const std::string page = render_report(runs);
  testing::write_file(std::string(KITCHEN_BINARY_DIR) + "/report_example/five_runs.html", page);
  EXPECT_EQ(XmlChecker(page).error(), "");
  EXPECT_TRUE(contains(page, "seed-1: 30 of 71 values not finite, shown as gaps."));
}

// labels: report.write_report
TEST(HtmlReport, WritingReplacesTheFileAtOnceAndLeavesNothingBehindOnFailure) {
  const TemporaryFolder folder;
  const std::vector<RunSummary> runs = two_runs(folder);
  const std::filesystem::path target = folder.path() / "out" / "report.html";
  EXPECT_THROW(write_report(runs, target.string()), IOError);  // the folder is not there
  testing::write_file(target, "old");
  write_report(runs, target.string());
  EXPECT_EQ(std::filesystem::file_size(target), render_report(runs).size());
  EXPECT_THROW(write_report(runs, (target / "below_a_file.html").string()), IOError);
  std::filesystem::create_directories(folder.path() / "out" / "taken" / "inside");
  EXPECT_THROW(write_report(runs, (folder.path() / "out" / "taken").string()), IOError);
  int entries = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path() / "out"))
    entries += entry.exists();
  EXPECT_EQ(entries, 2);
}

}  // namespace
}  // namespace kitchen::report
