#include "kitchen/extension/validate_recipe.h"

#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/config/layer_match.h"
#include "kitchen/config/yaml.h"
#include "support/expect_error.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace kitchen {
namespace {

using testing::throws;

RecipeConfig recipe_of(const std::string& text) {
  return RecipeConfig::from_config_dict(*parse_yaml(text, "r.yaml").get_if<ConfigDict>());
}

constexpr const char* kAll =
    "matchers:\n  all: {type: glob, pattern: '*', config: a, enabled: true}\n";

// labels: validate_recipe C15
TEST(ValidateRecipe, ChecksReferencesAndEveryConfigBeforeAnyWork) {
  EXPECT_TRUE(throws<KeyError>(
      [] {
        (void)validate_recipe(recipe_of(
            "configs:\n  fp8: {kitchen_config_type: QLinearParams, recipe_idx: 2}\n"
            "  mxfp8: {kitchen_config_type: QLinearRecipe, recipe: mxfp8}\n"
            "matchers:\n  all: {type: glob, pattern: '*', config: mxfp9, enabled: true}\n"));
      },
      {"mxfp9", "fp8, mxfp8", "r.yaml, line 5"}));
  // Also a configuration that no rule uses must parse, with the name and the line.
  EXPECT_TRUE(throws<KeyError>(
      [] {
        (void)validate_recipe(
            recipe_of("configs:\n  a: {kitchen_config_type: QLinearParams, recipe_idx: 2}\n"
                      "  unused:\n    kitchen_config_type: QLinearParams\n    recipe_index: 2\n" +
                      std::string(kAll)));
      },
      {"config unused", "\"recipe_index\"", "r.yaml, line 5", "did you mean \"recipe_idx\"?"}));
  EXPECT_TRUE(throws<ValueError>(
      [] {
        (void)validate_recipe(
            recipe_of("configs:\n  a: {kitchen_config_type: QLinearParams, recipe_idx: 9999}\n" +
                      std::string(kAll)));
      },
      {"config a", "9999", "r.yaml, line 2", "2 (fp8_cs)"}));
}

// labels: validate_recipe C05
TEST(ValidateRecipe, ARecipeThatCanDoNothingIsRefused) {
  EXPECT_TRUE(throws<ValueError>([] { (void)validate_recipe(RecipeConfig({}, {})); },
                                 {"no configs/matchers"}));
  EXPECT_TRUE(throws<ValueError>(
      [] {
        (void)validate_recipe(
            recipe_of("configs: {a: {kitchen_config_type: QLinearParams, recipe_idx: 1}}\n"));
      },
      {"no configs/matchers", "1 configs", "0 enabled matchers"}));
}

// labels: validate_recipe C12
TEST(ValidateRecipe, WarnsOfRulesThatCanNeverMatchAndExplainsTheRest) {
  LogCapture log;
  const RecipeReport report = validate_recipe(
      recipe_of("configs:\n  bf16: {kitchen_config_type: QLinearParams, recipe_idx: 1}\n"
                "  fp8: {kitchen_config_type: QLinearParams, recipe_idx: 2}\n"
                "  spare: {kitchen_config_type: QAttentionParams, recipe_idx: 1}\n"
                "matchers:\n  b: {type: glob, pattern: '*', config: fp8, enabled: true}\n"
                "  a: {type: glob, pattern: '*layers.42.*', config: bf16, enabled: true}\n"));
  ASSERT_EQ(report.warnings.size(), 2u);
  EXPECT_EQ(log.count(LogLevel::warning, "matcher a can never match"), 1) << log.text();
  EXPECT_EQ(log.count(LogLevel::warning, "config spare is used by no matcher"), 1) << log.text();
  EXPECT_NE(report.text.find("e5m2 tensor_current"), std::string::npos) << report.text;
  EXPECT_NE(report.text.find("unquantized"), std::string::npos);
}

// labels: validate_recipe recipes
TEST(ValidateRecipe, EveryRecipeFileOfTheProjectIsRightAndWarnsOfNothing) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(KITCHEN_SOURCE_DIR "/recipes")) {
    SCOPED_TRACE(entry.path().string());
    ++files;
    LogCapture log;
    const RecipeConfig recipe = load_quantization_recipe(entry.path().string());
    EXPECT_TRUE(validate_recipe(recipe).warnings.empty());
    EXPECT_EQ(log.count(LogLevel::warning, ""), 0) << log.text();
    // The catch-all takes every layer.
    EXPECT_TRUE(recipe.match({"decoder.layers.1.mlp.linear_fc1", 1}));
  }
  EXPECT_GE(files, 4);
}

// labels: recipes RecipeMatching C13
TEST(ValidateRecipe, MixedRecipeKeepsTheFirstAndTheLastLayer) {
  const RecipeConfig recipe = load_quantization_recipe(KITCHEN_SOURCE_DIR "/recipes/mixed.yaml");
  std::vector<std::string> paths;
  for (int layer = 0; layer < 4; ++layer) {
    paths.push_back("decoder.layers." + std::to_string(layer) + ".mlp.linear_fc1");
  }
  const auto matches = match_layers(recipe, paths);
  EXPECT_EQ(matches[0].config_key, "bf16");
  EXPECT_EQ(matches[1].config_key, "fp8_cs");
  EXPECT_EQ(matches[2].config_key, "fp8_cs");
  EXPECT_EQ(matches[3].config_key, "bf16");
}

}  // namespace
}  // namespace kitchen
