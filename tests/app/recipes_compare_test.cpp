#include "app/program.h"
#include "support/temporary_file.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace kitchen::testing {
namespace {

namespace fs = std::filesystem;

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// metrics.jsonl without what depends on the clock.
std::string metrics_of(const std::string& run_dir) {
  std::istringstream in(read(run_dir + "/metrics.jsonl"));
  std::string kept;
  for (std::string line; std::getline(in, line);)
    kept += line.substr(0, line.find(",\"tokens_per_s\"")) + "\n";
  return kept;
}

/// The words with another value behind `flag`.
Words with_value(Words words, const std::string& flag, const std::string& value) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == flag) words[i + 1] = value;
  }
  return words;
}

/// A text and an empty place for comparisons, removed at the end.
class RecipesCompare : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const {
    return data_.folder() + "/" + name;
  }
  [[nodiscard]] std::string out() const { return path("out"); }

  /// `tiny_training` with another command and without a run folder.
  [[nodiscard]] Words compare(const Words& flags) const {
    Words words = tiny_training(data_.path(), "");
    words.erase(words.end() - 2, words.end());
    words.erase(words.begin());
    return Words{"recipes", "compare", "--out", out()} + words + flags;
  }
  [[nodiscard]] ChildResult run(const Words& flags) const { return run_program(compare(flags)); }
  [[nodiscard]] static Words two_by_two() { return {"--recipes", "bf16,fp8_cs", "--seeds", "3,4"}; }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }

 private:
  TemporaryFile data_{"text.txt", sample_text(6000)};
};

// labels: app.recipes_compare
TEST_F(RecipesCompare, WritesTablesAndAPageOfRunsThatEqualThoseOfTrain) {
  const ChildResult result = run(two_by_two());
  ASSERT_TRUE(ends_with(result, 0, {}));
  for (const char* text : {"run 4 of 4: fp8_cs, seed 4", "tokens/s", "seed 3", "compare.html"})
    EXPECT_NE(result.out.find(text), std::string::npos) << text << result.out;
  for (const char* name : {"compare.md", "compare.html", "bf16-seed3", "fp8_cs-seed4"})
    EXPECT_TRUE(fs::exists(out() + "/" + name)) << name;
  const auto json = nlohmann::json::parse(read(out() + "/compare.json"));
  EXPECT_EQ(json.at("seeds"), (nlohmann::json{3, 4}));
  EXPECT_EQ(json.at("recipes")[0].at("recipe"), "bf16");
  EXPECT_TRUE(json.at("recipes")[1].at("sqnr_db").is_number());
  // The fourth run of a process has the bytes of the only run of another.
  const Words alone = tiny_training(path("text.txt"), path("alone")) +
                      Words{"--kitchen-recipe-name", "fp8_cs", "--seed", "4"};
  ASSERT_TRUE(ends_with(run_program(alone), 0, {}));
  EXPECT_EQ(metrics_of(out() + "/fp8_cs-seed4"), metrics_of(path("alone")));
}

// labels: app.recipes_compare
TEST_F(RecipesCompare, TakesNumbersAndRecipeFiles) {
  const std::string file =
      write("mine.yaml",
            "configs:\n"
            "  fp8: {kitchen_config_type: QLinearParams, recipe_idx: 2}\n"
            "matchers:\n"
            "  all: {type: glob, pattern: \"*\", config: fp8, enabled: true}\n");
  const ChildResult result = run({"--recipes", "1,2", "--recipe-files", file, "--seeds", "3"});
  ASSERT_TRUE(ends_with(result, 0, {}));
  const auto json = nlohmann::json::parse(read(out() + "/compare.json"));
  ASSERT_EQ(json.at("recipes").size(), 3u);
  EXPECT_EQ(json.at("recipes")[1].at("recipe"), "fp8_cs");
  EXPECT_EQ(json.at("recipes")[2].at("recipe"), "mine");
  EXPECT_EQ(json.at("recipes")[2].at("val_loss"), json.at("recipes")[1].at("val_loss"));
  EXPECT_EQ(json.at("recipes")[1].at("verdict"), "unknown: one seed shows no noise");
}

// labels: app.recipes_compare
TEST_F(RecipesCompare, FinishedRunsAreReusedAndNewRecipesAreAdded) {
  ASSERT_TRUE(ends_with(run(two_by_two()), 0, {}));
  const std::string metrics = read(out() + "/fp8_cs-seed3/metrics.jsonl");
  const std::string times = read(out() + "/fp8_cs-seed3/op_times.json");
  const ChildResult again = run({"--recipes", "bf16,fp8_cs,mxfp8", "--seeds", "3,4"});
  ASSERT_TRUE(ends_with(again, 0, {}));
  EXPECT_NE(again.out.find("fp8_cs, seed 3 is finished already"), std::string::npos) << again.out;
  // Times of the clock are in both files: they were not written again.
  EXPECT_EQ(read(out() + "/fp8_cs-seed3/metrics.jsonl"), metrics);
  EXPECT_EQ(read(out() + "/fp8_cs-seed3/op_times.json"), times);
  EXPECT_EQ(nlohmann::json::parse(read(out() + "/compare.json")).at("recipes").size(), 3u);
}

// labels: app.recipes_compare
TEST_F(RecipesCompare, RunsWithOtherSettingsAreRefusedBeforeAnyWork) {
  ASSERT_TRUE(ends_with(run(two_by_two()), 0, {}));
  const auto with = [&](const Words& flags) { return run(two_by_two() + flags); };
  EXPECT_TRUE(ends_with(with({"--lr", "0.001"}), 2,
                        {"bf16-seed3", "--lr: 0.003 in the run, 0.001 asked for", "--out"}));
  EXPECT_TRUE(ends_with(with({"--eval-interval", "2"}), 0, {}));
  const std::string other = write("other.txt", sample_text(5000));
  EXPECT_TRUE(ends_with(run_program(with_value(compare(two_by_two()), "--data", other)), 2,
                        {"--data: " + other, "is not the text"}));
  fs::remove_all(out() + "/bf16-seed3");
  EXPECT_TRUE(ends_with(with({"--weight-decay", "0.5"}), 2, {"fp8_cs-seed3", "--weight-decay"}));
  EXPECT_FALSE(fs::exists(out() + "/bf16-seed3"));
}

// labels: app.recipes_compare R03
TEST_F(RecipesCompare, AnInterruptedComparisonGoesOnAndEqualsAWholeOne) {
  const Words slow =
      with_value(compare({"--recipes", "bf16,fp8_cs", "--seeds", "3"}), "--train-iters", "400");
  ChildProcess child(program(slow));
  ASSERT_TRUE(child.wait_for_output("step   3/400", 30.0));
  child.send_signal(SIGINT);
  const ChildResult stopped = child.finish();
  ASSERT_TRUE(ends_with(stopped, 130, {}));
  EXPECT_NE(stopped.out.find("the same command goes on"), std::string::npos) << stopped.out;
  EXPECT_FALSE(fs::exists(out() + "/compare.html"));
  const ChildResult whole = run_program(slow);
  ASSERT_TRUE(ends_with(whole, 0, {}));
  EXPECT_NE(whole.out.find("resumed    at step"), std::string::npos) << whole.out;
  const Words alone = tiny_training(path("text.txt"), path("alone")) +
                      Words{"--kitchen-recipe-name", "bf16", "--seed", "3"};
  ASSERT_TRUE(ends_with(run_program(with_value(alone, "--train-iters", "400")), 0, {}));
  EXPECT_EQ(metrics_of(out() + "/bf16-seed3"), metrics_of(path("alone")));
}

// labels: app.recipes_compare R03
TEST_F(RecipesCompare, ARunWithoutACheckpointStartsOver) {
  ASSERT_TRUE(ends_with(run(two_by_two()), 0, {}));
  const std::string folder = out() + "/fp8_cs-seed4";
  const std::string metrics = metrics_of(folder);
  fs::remove_all(folder + "/checkpoint");
  fs::remove(folder + "/report.html");
  std::ofstream(folder + "/metrics.jsonl") << "{\"step\":1,\"train_";
  ASSERT_TRUE(ends_with(run(two_by_two()), 0, {}));
  EXPECT_EQ(metrics_of(folder), metrics);
}

// labels: app.recipes_compare C16
TEST_F(RecipesCompare, RecipesThatAreUnknownAloneOrRepeatedAreRefused) {
  EXPECT_TRUE(ends_with(run({"--recipes", "bf16,mxfp9"}), 2, {"mxfp9", "nearest: mxfp8"}));
  EXPECT_TRUE(ends_with(run({"--recipes", "bf16,9999"}), 2, {"9999", "known numbers: 1"}));
  EXPECT_TRUE(ends_with(run({"--recipes", "bf16"}), 2,
                        {"only the recipe bf16", "two recipes", "--recipes bf16,fp8_cs"}));
  EXPECT_TRUE(ends_with(run({"--recipes", "fp8_cs,2"}), 2, {"fp8_cs comes twice"}));
  EXPECT_TRUE(ends_with(run({"--recipe-files", path("none.yaml")}), 2, {"none.yaml"}));
  const std::string twin = write("bf16.yaml", "configs:\nmatchers:\n");
  EXPECT_TRUE(ends_with(run({"--recipe-files", twin}), 2, {"bf16 comes twice", "rename"}));
  const std::string wrong =
      write("wrong.yaml",
            "configs:\n"
            "  odd: {kitchen_config_type: QLinearParams, recipe_idx: 77}\n"
            "matchers:\n"
            "  all: {type: glob, pattern: \"*\", config: odd, enabled: true}\n");
  EXPECT_TRUE(ends_with(run({"--recipe-files", wrong}), 2, {wrong, "77", "of the recipe wrong"}));
  EXPECT_FALSE(fs::exists(out()));
}

// labels: app.recipes_compare
TEST_F(RecipesCompare, SeedsThatAreNoNumbersOrRepeatedAreRefused) {
  const auto with = [&](const std::string& seeds) {
    return run({"--recipes", "bf16,fp8_cs", "--seeds", seeds});
  };
  for (const char* bad : {"x", "1.5", "-1", "99999999999999999999"})
    EXPECT_TRUE(ends_with(with(bad), 2, {"--seeds"})) << bad;
  EXPECT_TRUE(ends_with(with("3,4,3"), 2, {"--seeds", "3 comes twice"}));
  EXPECT_FALSE(fs::exists(out()));
}

// labels: app.recipes_compare
TEST_F(RecipesCompare, AFolderThatHoldsSomethingElseIsRefused) {
  fs::create_directories(out());
  std::ofstream(out() + "/thesis.txt") << "do not touch";
  EXPECT_TRUE(ends_with(run(two_by_two()), 2, {out(), "thesis.txt", "--out"}));
  EXPECT_EQ(read(out() + "/thesis.txt"), "do not touch");
  fs::remove_all(out());
  std::ofstream(out()) << "a file";
  EXPECT_TRUE(ends_with(run(two_by_two()), 2, {out(), "is a file", "--out"}));
}

// labels: app.recipes_compare
TEST_F(RecipesCompare, SettingsThatItChoosesItselfAreRefused) {
  EXPECT_TRUE(ends_with(run(two_by_two() + Words{"--run-dir", path("x")}), 2, {"--run-dir"}));
  const std::string yaml = write("settings.yaml", "seed: 7\n");
  EXPECT_TRUE(ends_with(run(two_by_two() + Words{"--yaml-cfg", yaml}), 2,
                        {yaml, "seed", "chooses itself"}));
  EXPECT_FALSE(fs::exists(out()));
}

}  // namespace
}  // namespace kitchen::testing
