#include "kitchen/report/recipe_comparison.h"
#include "kitchen/base/error.h"
#include "support/xml_checker.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>

namespace kitchen::report {
namespace {

using testing::XmlChecker;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

RecipeRuns recipe(const std::string& name, const std::vector<double>& losses) {
  RecipeRuns runs{name, {}};
  for (const double loss : losses) {
    RunSummary run;
    MetricPoint first;
    first.step = 1;
    first.val_loss = 5.5;
    first.tokens_per_s = 100.0 * static_cast<double>(runs.runs.size() + 1);
    MetricPoint last = first;
    last.step = 2;
    last.val_loss = loss;
    run.metrics = {first, last};
    run.settings = {
        {"model.num_layers", "4"}, {"precision.kitchen_recipe_name", name}, {"run.run_dir", "x"}};
    runs.runs.push_back(std::move(run));
  }
  return runs;
}

Verdict verdict_of(const std::vector<double>& reference, const std::vector<double>& other) {
  const std::vector<std::int64_t> seeds =
      reference.size() == 1 ? std::vector<std::int64_t>{1} : std::vector<std::int64_t>{1, 2};
  return compare_recipes({recipe("bf16", reference), recipe("other", other)}, seeds)
      .recipes[1]
      .verdict;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// labels: report.recipe_comparison
TEST(RecipeComparison, MeasuresMeanSpreadDifferenceAndCosts) {
  RecipeRuns fp8 = recipe("fp8", {2.25, 2.0});
  QuantizationError error;
  error.sqnr_db = 30.0;
  fp8.runs[0].quantization = {error};
  error.sqnr_db = 20.0;
  fp8.runs[1].quantization = {error, QuantizationError{}};
  const RecipeComparison comparison = compare_recipes({recipe("bf16", {2.0, 2.125}), fp8}, {7, 8});
  // All of these are sums of powers of two, hence exact, but for the percentage.
  const RecipeResult& reference = comparison.recipes[0];
  EXPECT_EQ(reference.mean, 2.0625);
  EXPECT_EQ(reference.spread, 0.125);
  EXPECT_EQ(reference.verdict, Verdict::reference);
  EXPECT_FALSE(reference.sqnr_db.has_value());
  const RecipeResult& other = comparison.recipes[1];
  EXPECT_EQ(other.mean, 2.125);
  EXPECT_EQ(other.spread, 0.25);
  EXPECT_NEAR(*other.difference_percent, 100.0 * 0.0625 / 2.0625, 1e-9);
  EXPECT_EQ(other.seeds_above, 1);
  EXPECT_EQ(*other.sqnr_db, 25.0);
  EXPECT_EQ(*other.tokens_per_s, 150.0);
  EXPECT_EQ(other.verdict, Verdict::within_noise);
  ASSERT_EQ(comparison.settings.size(), 1u);
  EXPECT_EQ(comparison.settings[0].first, "model.num_layers");
}

// labels: report.recipe_comparison
TEST(RecipeComparison, JudgesByTheSpreadOfTheReference) {
  EXPECT_EQ(verdict_of({2.0, 2.25}, {2.25, 2.5}), Verdict::within_noise);  // just as far apart
  EXPECT_EQ(verdict_of({2.0, 2.25}, {2.25, 2.625}), Verdict::worse);
  EXPECT_EQ(verdict_of({2.0, 2.25}, {1.75, 1.875}), Verdict::better);
  // A recipe that is noisy itself gains nothing by it.
  EXPECT_EQ(verdict_of({2.0, 2.25}, {2.0, 4.0}), Verdict::worse);
  EXPECT_EQ(verdict_of({2.0, 2.0}, {2.0, 2.0}), Verdict::within_noise);
  EXPECT_EQ(verdict_of({2.0}, {2.5}), Verdict::one_seed);
}

// labels: report.recipe_comparison T03
TEST(RecipeComparison, LossesThatAreNotFiniteAreNoVerdict) {
  EXPECT_EQ(verdict_of({2.0, 2.25}, {kNaN, 2.0}), Verdict::not_finite);
  EXPECT_EQ(verdict_of({2.0, std::numeric_limits<double>::infinity()}, {2.0, 2.0}),
            Verdict::not_finite);
  RecipeRuns unmeasured = recipe("fp8", {2.0, 2.0});
  unmeasured.runs[0].metrics.clear();
  const RecipeComparison comparison =
      compare_recipes({recipe("bf16", {2.0, 2.0}), unmeasured}, {1, 2});
  EXPECT_EQ(comparison.recipes[1].verdict, Verdict::not_finite);
  EXPECT_TRUE(std::isnan(comparison.recipes[1].spread));
  const auto json = nlohmann::json::parse(comparison_json(comparison));
  EXPECT_TRUE(json.at("recipes")[1].at("mean").is_null());
  EXPECT_TRUE(json.at("recipes")[1].at("val_loss")[0].is_null());
  EXPECT_EQ(XmlChecker(comparison_page(comparison)).error(), "");
}

// labels: report.recipe_comparison
TEST(RecipeComparison, AllOutputsHoldTheSameNumbers) {
  const RecipeComparison comparison =
      compare_recipes({recipe("bf16", {2.0, 2.25}), recipe("a|b <c>", {2.25, 2.625})}, {7, 8});
  const std::string markdown = comparison_markdown(comparison);
  const std::string page = comparison_page(comparison);
  for (const char* number :
       {"2.1250", "2.4375", "0.3750", "+14.71 %", "2 of 2", "worse, beyond the seeds&#39; noise"}) {
    EXPECT_TRUE(contains(page, number)) << number;
  }
  EXPECT_TRUE(contains(markdown, "| a\\|b <c> | 2.2500 | 2.6250 | 2.4375 | 0.3750 | +14.71 % |"))
      << markdown;
  const auto json = nlohmann::json::parse(comparison_json(comparison));
  EXPECT_EQ(json.at("seeds"), (nlohmann::json{7, 8}));
  EXPECT_EQ(json.at("recipes")[1].at("mean"), 2.4375);
  EXPECT_EQ(json.at("settings").at("model.num_layers"), "4");
}

// labels: report.recipe_comparison
TEST(RecipeComparison, TheHeadlineNamesFirstWhatIsApart) {
  const RecipeComparison comparison = compare_recipes(
      {recipe("bf16", {2.0, 2.25}), recipe("near", {2.0, 2.25}), recipe("far", {4.25, 4.25})},
      {7, 8});
  EXPECT_EQ(comparison_headline(comparison),
            "Against bf16 – worse, beyond the seeds' noise: far (+100.00 %); within the seeds' "
            "noise: near (0.00 %).");
}

// labels: report.recipe_comparison
TEST(RecipeComparison, ThePageStandsAloneAndIsReachableByKeyboard) {
  const std::string page = comparison_page(
      compare_recipes({recipe("bf16", {2.0, 2.25}), recipe("a & <b>", {2.25, 2.625})}, {7, 8}));
  EXPECT_EQ(XmlChecker(page).error(), "");
  for (const char* part :
       {"role=\"region\" tabindex=\"0\"", "<figure id=\"loss-dots\" tabindex=\"0\"",
        "Skip to the content", "lang=\"en\"", "scope=\"row\"", "default-src 'none'"}) {
    EXPECT_TRUE(contains(page, part)) << part;
  }
  for (const char* part : {"http://", "https://", "<script", "a & <b>"})
    EXPECT_FALSE(contains(page, part)) << part;
}

// labels: report.recipe_comparison
TEST(RecipeComparison, RefusesOneRecipeNoSeedAndMissingRuns) {
  const RecipeRuns good = recipe("bf16", {2.0, 2.0});
  EXPECT_THROW((void)compare_recipes({good}, {1, 2}), ValueError);
  EXPECT_THROW((void)compare_recipes({good, good}, {}), ValueError);
  EXPECT_THROW((void)compare_recipes({good, recipe("fp8", {2.0})}, {1, 2}), ValueError);
}

}  // namespace
}  // namespace kitchen::report
