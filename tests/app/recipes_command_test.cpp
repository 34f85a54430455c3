#include "app/program.h"
#include "support/temporary_file.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <regex>

namespace kitchen::testing {
namespace {

constexpr const char* kTwoConfigs =
    "configs:\n"
    "  fp8: {kitchen_config_type: QLinearParams, recipe_idx: 2}\n"
    "  high: {kitchen_config_type: QLinearParams, recipe_idx: 1}\n"
    "matchers:\n";

std::string matcher(const std::string& name, const std::string& pattern,
                    const std::string& config) {
  return "  " + name + ": {type: glob, pattern: \"" + pattern + "\", config: " + config +
         ", enabled: true}\n";
}

ChildResult check(const std::string& yaml, const Words& flags = tiny_model()) {
  const TemporaryFile file("recipe.yaml", yaml);
  return run_program(Words{"recipes", "check", file.path()} + flags);
}

bool has_line(const std::string& text, const std::string& pattern) {
  return std::regex_search(text, std::regex(pattern));
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t i = text.find(part); i != std::string::npos; i = text.find(part, i + 1)) ++found;
  return found;
}

// labels: app.recipes C16
TEST(RecipesList, ShowsNumbersNamesAndEvidenceOfAllTables) {
  const ChildResult result = run_program({"recipes", "list"});
  EXPECT_EQ(result.status, 0);
  EXPECT_TRUE(has_line(result.out, "2 +fp8_cs +public"));
  EXPECT_TRUE(has_line(result.out, "6001 +mxfp8_emulation +inferred"));
  EXPECT_TRUE(has_line(result.out, "6001 +mxfp8_emulation +public"));
  EXPECT_TRUE(has_line(result.out, "- +triton_fa_bf16_for_all_natural +public"));
}

// labels: app.recipes D13
TEST(RecipesExplain, TellsNativeHardwareByProductWhereItDiffers) {
  const std::string equal = run_program({"recipes", "explain", "fp8_cs"}).out;
  EXPECT_TRUE(has_line(equal, "native on +fp8 tensor cores"));
  EXPECT_FALSE(has_line(equal, "fprop: "));
  const std::string last_bf16 = run_program({"recipes", "explain", "fp8_cs_bf16_wgrad"}).out;
  EXPECT_TRUE(has_line(last_bf16, "native on +fprop: fp8 tensor cores"));
  EXPECT_TRUE(has_line(last_bf16, "dgrad: fp8 tensor cores"));
  EXPECT_TRUE(has_line(last_bf16, "wgrad: any GPU with bf16"));
  const std::string int8 = run_program({"recipes", "explain", "int8_row"}).out;
  EXPECT_TRUE(has_line(int8, "native on +fprop: int8 tensor cores"));
  EXPECT_TRUE(has_line(int8, "dgrad: any GPU with bf16"));
}

// labels: app.recipes D13
TEST(RecipesExplain, TellsOperandsBitsHardwareAndDtypes) {
  const ChildResult fp8 = run_program({"recipes", "explain", "2"});
  EXPECT_EQ(fp8.status, 0);
  EXPECT_NE(fp8.out.find("fp8_cs, number 2 (public"), std::string::npos);
  for (const char* use :
       {"x in fprop", "w in fprop", "dy in dgrad", "w in dgrad", "dy in wgrad", "x in wgrad"}) {
    EXPECT_NE(fp8.out.find(use), std::string::npos) << use;
  }
  EXPECT_TRUE(has_line(fp8.out, "dy in wgrad +e5m2 +whole tensor +float32 +nearest even"));
  EXPECT_TRUE(has_line(fp8.out, "main weights +float32"));
  EXPECT_TRUE(has_line(fp8.out, "optimizer moments +float32"));
  const ChildResult nvfp4 = run_program({"recipes", "explain", "nvfp4_rht_2d_sr"});
  EXPECT_TRUE(has_line(nvfp4.out, "w in fprop +e2m1 +16x16 .* nearest even +4.5"));
  EXPECT_TRUE(has_line(nvfp4.out, "dy in dgrad .* stochastic +4.5"));
  EXPECT_TRUE(has_line(nvfp4.out, "dy in wgrad .* stochastic, after a Hadamard transform"));
  EXPECT_TRUE(has_line(nvfp4.out, "without a number"));
  const ChildResult mixed = run_program({"recipes", "explain", "fp8_cs_bf16_wgrad"});
  EXPECT_TRUE(has_line(mixed.out, "x in wgrad +compute dtype"));
  EXPECT_TRUE(has_line(mixed.out, "activations .* e4m3 in fprop, bf16 in wgrad"));
}

// labels: app.recipes C16
TEST(RecipesExplain, ANumberInTwoTablesIsExplainedForBoth) {
  const ChildResult result = run_program({"recipes", "explain", "6001"});
  EXPECT_NE(result.out.find("Linear recipe mxfp8_emulation"), std::string::npos);
  EXPECT_NE(result.out.find("Unfused attention recipe mxfp8_emulation"), std::string::npos);
}

// labels: app.recipes D13
TEST(RecipesExplain, DescriptionsOfAFileAreExplainedAsTheTablesAre) {
  const TemporaryFile file(
      "mine.yaml",
      "configs:\n"
      "  own:\n"
      "    kitchen_config_type: QLinearRecipe\n"
      "    recipe: {name: own_blocks, x: {format: e4m3, scaling: mx32},\n"
      "             w: {format: e4m3, scaling: mx32}, dy: {format: e5m2, scaling: mx32}}\n"
      "  core: {kitchen_config_type: QAttentionParams, recipe_idx: 6001}\n"
      "matchers:\n" +
          matcher("all", "*", "own"));
  const ChildResult result = run_program({"recipes", "explain", file.path()});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(has_line(result.out, "Linear recipe own_blocks, without a number .described by"));
  EXPECT_TRUE(has_line(result.out, "dy in wgrad +e5m2 +1x32 +e8m0, rounded up .* 8.25"));
  EXPECT_TRUE(has_line(result.out, "Unfused attention recipe mxfp8_emulation, number 6001"));
  EXPECT_TRUE(
      ends_with(run_program({"recipes", "explain", "none.yaml"}), 2, {"none.yaml"}));
}

// labels: app.recipes C16
TEST(RecipesExplain, AnUnknownRecipeNamesTheNearestAndTheKnownOnes) {
  EXPECT_TRUE(ends_with(run_program({"recipes", "explain", "triton_fa_bf16_for_all_naturel"}), 2,
                        {"did you mean \"triton_fa_bf16_for_all_natural\""}));
  EXPECT_TRUE(ends_with(run_program({"recipes", "explain", "9999"}), 2,
                        {"\"9999\"", "Known numbers: 1, 2, 6001"}));
  EXPECT_TRUE(
      ends_with(run_program({"recipes", "explain", "-1"}), 2, {"\"-1\"", "Known numbers: 1, 2"}));
}

// labels: app.recipes C12
TEST(RecipesCheck, FirstRuleInFileOrderWins) {
  const Words deep = tiny_model() + Words{"--kitchen-attention-backend", "sdpa"};
  Words layers = deep;
  layers[1] = "12";
  const ChildResult good =
      check(kTwoConfigs + matcher("a", "*layers.11.*", "high") + matcher("b", "*", "fp8"), layers);
  EXPECT_EQ(good.status, 0) << good.err;
  EXPECT_TRUE(has_line(good.out, "layers.11.mlp.linear_fc1 +\\S+ +a +high"));
  EXPECT_TRUE(has_line(good.out, "layers.10.mlp.linear_fc1 +\\S+ +b +fp8"));
  EXPECT_EQ(good.err.find("can never match"), std::string::npos);
  const ChildResult reversed =
      check(kTwoConfigs + matcher("b", "*", "fp8") + matcher("a", "*layers.11.*", "high"), layers);
  EXPECT_EQ(reversed.status, 0);
  EXPECT_TRUE(has_line(reversed.out, "layers.11.mlp.linear_fc1 +\\S+ +b +fp8"));
  EXPECT_EQ(count(reversed.err, "matcher a can never match"), 1u) << reversed.err;
}

// labels: app.recipes C13
TEST(RecipesCheck, TheListShowsThatAStarAlsoTakesLayersTenAndEleven) {
  Words twelve = tiny_model();
  twelve[1] = "12";
  const std::string rest = matcher("others", "*", "high");
  const ChildResult loose = check(kTwoConfigs + matcher("one", "*layers.1*", "fp8") + rest, twelve);
  EXPECT_EQ(count(loose.out, " one "), 12u) << loose.out;  // 3 layers of 4 linears
  const ChildResult exact =
      check(kTwoConfigs + matcher("one", "*layers.1.*", "fp8") + rest, twelve);
  EXPECT_EQ(count(exact.out, " one "), 4u) << exact.out;
  EXPECT_TRUE(has_line(exact.out, "layers.10.mlp.linear_fc2 +\\S+ +others"));
}

// labels: app.recipes C13
TEST(RecipesCheck, AttentionCoresAreListedWhereTheyAreKitchens) {
  const std::string yaml =
      "configs:\n"
      "  fp8: {kitchen_config_type: QLinearParams, recipe_idx: 2}\n"
      "  core: {kitchen_config_type: QAttentionParams, recipe_idx: 6001}\n"
      "matchers:\n" +
      matcher("attention", "*core_attention", "core") + matcher("others", "*", "fp8");
  const ChildResult with = check(yaml, tiny_model() + Words{"--use-kitchen-attention"});
  EXPECT_TRUE(has_line(with.out, "core_attention +KitchenDotProductAttention +attention +core"))
      << with.err;
  const ChildResult without = check(yaml);
  EXPECT_EQ(without.status, 0);
  EXPECT_NE(without.out.find("--use-kitchen-attention"), std::string::npos);
}

// labels: app.recipes C15 C16
TEST(RecipesCheck, UnknownReferencesAndRecipesAreRefused) {
  EXPECT_TRUE(ends_with(
      check("configs:\n  fp8: {kitchen_config_type: QLinearParams, recipe_idx: 2}\n"
            "  mxfp8: {kitchen_config_type: QLinearParams, recipe_idx: 6001}\n"
            "matchers:\n" +
            matcher("all", "*", "mxfp9")),
      2, {"recipe.yaml", "\"mxfp9\"", "known names: fp8, mxfp8", "did you mean \"mxfp8\""}));
  EXPECT_TRUE(
      ends_with(check("configs:\n  a: {kitchen_config_type: QLinearParams, recipe_idx: 9999}\n"
                      "matchers:\n" +
                      matcher("all", "*", "a")),
                2, {"9999", "known numbers: 1 (bf16), 2 (fp8_cs)", "config a"}));
  EXPECT_TRUE(
      ends_with(check("configs:\n  a: {kitchen_config_type: QLinearParams, recipe_idx: -1}\n"
                      "matchers:\n" +
                      matcher("all", "*", "a")),
                2, {"recipe_idx must be a positive integer", "-1"}));
}

// labels: app.recipes C01 C03 C05 C17 C23
TEST(RecipesCheck, SlipsInTheFileNameFileLineAndKey) {
  const std::string all = "matchers:\n" + matcher("all", "*", "a");
  EXPECT_TRUE(ends_with(
      check("configs:\n  a: {kitchen_config_type: QLinearParams, recipe_index: 2}\n" + all), 2,
      {"recipe.yaml", "line 2", "recipe_index", "did you mean \"recipe_idx\""}));
  EXPECT_TRUE(
      ends_with(check("configs:\n  a: {kitchen_config_type: QLinearParams, recipe_idx: 2}\n"
                      "matchers:\n  m: {type: glob, patern: \"*\", config: a, enabled: true}\n"),
                2, {"recipe.yaml", "line 4", "patern", "did you mean \"pattern\""}));
  EXPECT_TRUE(
      ends_with(check("configs:\n  a: {kitchen_config_type: QLinear, recipe_idx: 2}\n" + all), 2,
                {"QLinear", "QLinearParams"}));
  EXPECT_TRUE(ends_with(
      check("configs:\n  a: {kitchen_config_type: QLinearParams, recipe_idx: two}\n" + all), 2,
      {"recipe_idx", "two"}));
  EXPECT_TRUE(ends_with(check("configs:\n  a: {kitchen_config_type: QLinearParams}\n" + all), 2,
                        {"recipe_idx", "line 2"}));
  EXPECT_TRUE(ends_with(check("configs:\n  a: {recipe_idx: 2}\n" + all), 2,
                        {"kitchen_config_type", "line 2"}));
  EXPECT_TRUE(ends_with(check(""), 2, {"recipe.yaml"}));
  EXPECT_TRUE(ends_with(run_program({"recipes", "check", "/nowhere/recipe.yaml"}), 2,
                        {"/nowhere/recipe.yaml"}));
}

// labels: app.recipes
TEST(RecipesCheck, AModelThatCannotBeBuiltIsRefusedBeforeTheRecipe) {
  const std::string yaml = kTwoConfigs + matcher("all", "*", "fp8");
  EXPECT_TRUE(ends_with(check(yaml, {"--hidden-size", "30", "--num-attention-heads", "4"}), 2,
                        {"--hidden-size 30", "--num-attention-heads 4"}));
  EXPECT_TRUE(
      ends_with(check(yaml, {"--kitchen-recipe-number", "2"}), 2, {"--kitchen-recipe-number"}));
}

}  // namespace
}  // namespace kitchen::testing
