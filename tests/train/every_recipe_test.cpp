#include "kitchen/recipes/predefined.h"
#include "train/tiny_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace kitchen::train {
namespace {

using testing::TinyRun;

/// The loss starts at ln 128 = 4.85; what letters alone tell gives 2.8, so that 3.6 is learning.
void expect_learns(TinyRun& run) {
  run.settings.train_iters = 20;
  EXPECT_EQ(run.run(), RunEnd::finished);
  for (const auto& line : run.lines()) ASSERT_TRUE(line["train_loss"].is_number());
  EXPECT_NEAR(run.lines().front()["train_loss"].get<double>(), std::log(128.0), 0.15);
  EXPECT_LT(run.lines().back()["train_loss"].get<double>(), 3.6);
  EXPECT_EQ(run.lines().back()["nan_iterations"], 0);
}

std::string test_name(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return !std::isalnum(c); }, '_');
  return text;
}

std::vector<std::string> recipe_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(KITCHEN_SOURCE_DIR "/recipes")) {
    files.push_back(entry.path().filename());
  }
  std::sort(files.begin(), files.end());
  return files;
}

class RecipeFile : public ::testing::TestWithParam<std::string> {};

// labels: train.Trainer recipes T16
TEST_P(RecipeFile, Trains) {
  TinyRun run;
  run.settings.num_layers = 4;  // as the files with layer numbers are written for
  run.settings.kitchen_config_file = KITCHEN_SOURCE_DIR "/recipes/" + GetParam();
  run.settings.use_kitchen_attention = GetParam() == "attention.yaml";
  if (run.settings.use_kitchen_attention) run.settings.kitchen_attention_backend = "fa";
  expect_learns(run);
}
INSTANTIATE_TEST_SUITE_P(All, RecipeFile, ::testing::ValuesIn(recipe_files()),
                         [](const auto& entry) { return test_name(entry.param); });

std::vector<std::string> linear_names() {
  std::vector<std::string> names;
  for (const auto& recipe : predefined_linear_recipes()) names.push_back(recipe->name);
  return names;
}

class LinearRecipeName : public ::testing::TestWithParam<std::string> {};

// labels: train.Trainer recipes T16
TEST_P(LinearRecipeName, Trains) {
  TinyRun run;
  run.settings.kitchen_recipe_name = GetParam();
  expect_learns(run);
}
INSTANTIATE_TEST_SUITE_P(All, LinearRecipeName, ::testing::ValuesIn(linear_names()),
                         [](const auto& entry) { return entry.param; });

}  // namespace
}  // namespace kitchen::train
