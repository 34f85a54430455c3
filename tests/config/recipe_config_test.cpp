#include "kitchen/config/recipe_config.h"

#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/config/glob_matcher.h"
#include "kitchen/config/layer_match.h"
#include "kitchen/config/recipe_references.h"
#include "kitchen/config/yaml.h"
#include "support/expect_error.h"
#include "support/temporary_file.h"

#include <gtest/gtest.h>

namespace kitchen {
namespace {

using testing::TemporaryFile;
using testing::throws;

ConfigDict dict_of(const std::string& text) {
  return *parse_yaml(text, "recipe.yaml").get_if<ConfigDict>();
}

RecipeConfig recipe_of(const std::string& text) {
  return RecipeConfig::from_config_dict(dict_of(text));
}

constexpr const char* kConfigs =
    "configs:\n"
    "  bf16: {kitchen_config_type: QLinearParams, recipe_idx: 1}\n"
    "  fp8: {kitchen_config_type: QLinearParams, recipe_idx: 2}\n";

std::string with_matchers(const std::string& rules) {
  return std::string(kConfigs) + "matchers:\n" + rules;
}

std::string key_of(const RecipeConfig& recipe, const std::string& path) {
  return recipe.match_to_config_key({path, std::nullopt}).value_or("none");
}

// labels: RecipeMatching C12 RecipeConfig
TEST(RecipeConfig, FirstMatchInFileOrderWins) {
  const char* const specific =
      "  a: {type: glob, pattern: '*layers.42.*', config: bf16, enabled: true}\n";
  const char* const general = "  b: {type: glob, pattern: '*', config: fp8, enabled: true}\n";
  const RecipeConfig recipe = recipe_of(with_matchers(std::string(specific) + general));
  EXPECT_EQ(key_of(recipe, "decoder.layers.42.mlp"), "bf16");
  EXPECT_EQ(key_of(recipe, "decoder.layers.41.mlp"), "fp8");
  EXPECT_TRUE(unreachable_matchers(recipe).empty());

  const RecipeConfig reversed = recipe_of(with_matchers(std::string(general) + specific));
  EXPECT_EQ(key_of(reversed, "decoder.layers.42.mlp"), "fp8");
  const std::vector<std::string> warnings = unreachable_matchers(reversed);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("matcher a can never match"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[0].find("line 6"), std::string::npos) << warnings[0];
}

// labels: RecipeMatching RecipeConfig
TEST(RecipeConfig, NoMatchGivesNothing) {
  const RecipeConfig recipe =
      recipe_of(with_matchers("  a: {type: glob, pattern: '*fc2', config: fp8, enabled: true}\n"));
  EXPECT_EQ(recipe.match({"mlp.linear_fc1", std::nullopt}), std::nullopt);
  EXPECT_EQ(RecipeConfig({}, {}).match({"x", std::nullopt}), std::nullopt);
  const auto found = recipe.match({"mlp.linear_fc2", 3});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->config_key, "fp8");
  EXPECT_EQ(found->match_input, (MatchContext{"mlp.linear_fc2", 3}));
  EXPECT_EQ(found->config,
            (ConfigDict{{"kitchen_config_type", "QLinearParams"}, {"recipe_idx", 2}}));
  EXPECT_NE(found->repr().find("mlp.linear_fc2"), std::string::npos);
}

// labels: RecipeMatching C15 RecipeConfig
TEST(RecipeConfig, MissingConfigKeyIsFoundWhenMatchedOrWhenChecked) {
  const RecipeConfig recipe = recipe_of(
      "configs:\n  fp8: {a: 1}\n  mxfp8: {a: 2}\n"
      "matchers:\n  all: {type: glob, pattern: '*', config: mxfp9, enabled: true}\n");
  EXPECT_EQ(key_of(recipe, "x"), "mxfp9");
  EXPECT_TRUE(throws<KeyError>(
      [&] {
        (void)recipe.match({"layer.x", std::nullopt});
      },
      {"mxfp9", "layer.x", "fp8, mxfp8"}));
  EXPECT_TRUE(throws<KeyError>(
      [&] { check_recipe_references(recipe); },
      {"matcher all", "recipe.yaml, line 5", "mxfp9", "fp8, mxfp8", "did you mean \"mxfp8\"?"}));
}

// labels: RecipeMatching QuantizationConfig
TEST(QuantizationConfig, ChangingOneCopyReachesNeitherTheRecipeNorAnotherLayer) {
  const RecipeConfig recipe =
      recipe_of(with_matchers("  a: {type: glob, pattern: '*', config: fp8, enabled: true}\n"));
  auto first = recipe.match({"a", std::nullopt});
  const auto second = recipe.match({"b", std::nullopt});
  first->config.set("recipe_idx", 99);
  EXPECT_EQ(second->config.at("recipe_idx"), ConfigValue(2));
  EXPECT_EQ(recipe.match({"a", std::nullopt})->config.at("recipe_idx"), ConfigValue(2));
  EXPECT_EQ(recipe.configs().at("fp8").at("recipe_idx"), ConfigValue(2));
  ConfigDict source{{"x", 1}};
  const QuantizationConfig copy(source, {"m", std::nullopt}, "k");
  source.set("x", 2);
  EXPECT_EQ(copy.config.at("x"), ConfigValue(1));
}

// labels: RecipeMatching D16 RecipeConfig._build_matchers
TEST(RecipeConfig, RulesThatAreOffAreSkippedUnread) {
  LogCapture log;
  const RecipeConfig recipe =
      recipe_of(with_matchers("  forgot: {type: nonsense}\n"
                              "  off: {type: nonsense, enabled: false}\n"
                              "  typo: {type: glob, pattern: '*', config: fp8, enable: true}\n"
                              "  on: {type: glob, pattern: '*', config: bf16, enabled: yes}\n"));
  EXPECT_EQ(recipe.matchers().size(), 1u);
  EXPECT_EQ(key_of(recipe, "x"), "bf16");
  EXPECT_EQ(log.count(LogLevel::warning, "matcher forgot is off"), 1) << log.text();
  EXPECT_EQ(log.count(LogLevel::warning, "matcher off"), 0);
  EXPECT_EQ(log.count(LogLevel::warning, "did you mean \"enabled\"?"), 1) << log.text();
}

// labels: RecipeMatching C01 RecipeConfig._build_matchers
TEST(RecipeConfig, MissingFieldsNameTheRuleAndTheMisspeltKey) {
  const auto build = [](const std::string& rule) {
    return [rule] {
      (void)recipe_of(with_matchers("  mine:\n    " + rule + "\n    enabled: true\n"));
    };
  };
  EXPECT_TRUE(throws<AssertionError>(build("type: glob\n    patern: '*'\n    config: fp8"),
                                     {"matcher mine", "pattern", "\"patern\"",
                                      "recipe.yaml, line 7", "did you mean \"pattern\"?"}));
  EXPECT_TRUE(throws<AssertionError>(build("type: glob\n    pattern: '*'"), {"mine", "config"}));
  EXPECT_TRUE(throws<AssertionError>(build("pattern: '*'\n    config: fp8"), {"mine", "type"}));
  EXPECT_TRUE(throws<TypeError>(build("type: glob\n    pattern: 5\n    config: fp8"),
                                {"mine", "pattern", "5 (integer)", "line 7"}));
}

// labels: RecipeMatching C11 RecipeConfig._build_matchers
TEST(RecipeConfig, UnknownTypesListTheKnownOnes) {
  const auto build = [](const std::string& type) {
    return [type] {
      (void)recipe_of(
          with_matchers("  m: {type: " + type + ", pattern: x, config: y, enabled: true}\n"));
    };
  };
  EXPECT_TRUE(throws<NotImplementedError>(build("regex"),
                                          {"Match type \"regex\"", "known types: glob", "line 5"}));
  EXPECT_TRUE(throws<NotImplementedError>(build("Glob"),
                                          {"Match type \"Glob\"", "did you mean \"glob\"?"}));
}

// labels: RecipeMatching RecipeConfig
TEST(RecipeConfig, SectionsMayBeMissingOrNullAndMustBeMappings) {
  EXPECT_TRUE(recipe_of("configs:\nmatchers:\n").matchers().empty());
  EXPECT_TRUE(recipe_of("other: 1\n").configs().empty());
  EXPECT_TRUE(RecipeConfig::_build_matchers(std::nullopt).empty());
  EXPECT_TRUE(throws<TypeError>([] { (void)recipe_of("matchers: [1]\n"); }, {"matchers", "list"}));
  EXPECT_TRUE(throws<TypeError>([] { (void)recipe_of("configs: text\n"); }, {"configs", "text"}));
  EXPECT_TRUE(throws<TypeError>([] { (void)recipe_of("matchers: {a: 5}\n"); }, {"matcher a", "5"}));
  EXPECT_TRUE(throws<TypeError>([] { (void)recipe_of("matchers: {a: {enabled: 'true'}}\n"); },
                                {"matcher a", "enabled"}));
  LogCapture log;
  (void)recipe_of("matcher: {}\n");
  EXPECT_EQ(log.count(LogLevel::warning, "did you mean \"matchers\"?"), 1) << log.text();
}

// labels: C17 RecipeConfig
TEST(RecipeConfig, AConfigThatIsAListIsRefused) {
  EXPECT_TRUE(throws<TypeError>([] { (void)recipe_of("configs:\n  fp8: [1, 2]\n"); },
                                {"config fp8", "mapping", "[1, 2] (list)", "line 2"}));
}

// labels: RecipeMatching C05 load_quantization_recipe
TEST(RecipeConfig, FilesAreLoadedAndLogged) {
  const TemporaryFile file(
      "mine.yaml", with_matchers("  a: {type: glob, pattern: '*', config: fp8, enabled: true}\n"));
  LogCapture log;
  const RecipeConfig recipe = load_quantization_recipe(file.path());
  EXPECT_EQ(log.count(LogLevel::info, "mine.yaml"), 1);
  (void)recipe.match({"some.layer", std::nullopt});
  EXPECT_EQ(log.count(LogLevel::info, "some.layer"), 1);
  const TemporaryFile empty("empty.yaml", "");
  EXPECT_TRUE(throws<TypeError>([&] { (void)load_quantization_recipe(empty.path()); },
                                {"empty.yaml", "configs and matchers"}));
  EXPECT_TRUE(throws<IOError>([] { (void)load_quantization_recipe("/nowhere/x.yaml"); },
                              {"/nowhere/x.yaml"}));
}

// labels: RecipeMatching D15 get_quant_config_or_none
TEST(RecipeConfig, LayerNumberIsReadFromThePath) {
  EXPECT_EQ(layer_number_of("decoder.layers.3.mlp.linear_fc1"), 3);
  EXPECT_EQ(layer_number_of("layers.12"), 12);
  EXPECT_EQ(layer_number_of("a.layers.x.layers.7.b.layers.9"), 7);
  EXPECT_EQ(layer_number_of("layers.-1.x"), std::nullopt);
  EXPECT_EQ(layer_number_of("embedding"), std::nullopt);
  EXPECT_EQ(layer_number_of("layers."), std::nullopt);
  EXPECT_EQ(get_quant_config_or_none("decoder.layers.3.mlp"), std::nullopt);
  const auto recipe = std::make_shared<const RecipeConfig>(kitchen_quantization_recipe_config(2));
  const auto found = get_quant_config_or_none("decoder.layers.3.mlp", recipe);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->match_input, (MatchContext{"decoder.layers.3.mlp", 3}));
  EXPECT_EQ(get_quant_config_or_none("output_layer", recipe)->match_input.layer_number,
            std::nullopt);
}

// labels: RecipeMatching kitchen_quantization_recipe_config
TEST(RecipeConfig, RecipeNumberMakesOneRuleForEveryLayer) {
  const RecipeConfig recipe = kitchen_quantization_recipe_config(-5);
  ASSERT_EQ(recipe.matchers().size(), 1u);
  const auto found = recipe.match({"anything", std::nullopt});
  EXPECT_EQ(found->config_key, "default");
  // The number is not looked at before a layer parses it.
  EXPECT_EQ(found->config,
            (ConfigDict{{"kitchen_config_type", "QLinearParams"}, {"recipe_idx", -5}}));
}

/// A user's own matcher; takes odd layers.
class OddLayers : public Matcher {
 public:
  std::optional<std::string> match(const MatchContext& context) const override {
    const bool odd = context.layer_number && *context.layer_number % 2 == 1;
    return odd ? std::optional<std::string>("fp8") : std::nullopt;
  }
  std::string repr() const override { return "OddLayers()"; }
};

// labels: RecipeMatching Matcher C13
TEST(RecipeConfig, CustomMatchersReadTheLayerNumberAndTheDumpShowsIt) {
  const RecipeConfig recipe(
      {std::make_shared<OddLayers>(), std::make_shared<GlobMatcher>("*layers.1*", "bf16", "tens")},
      {{"fp8", {}}, {"bf16", {}}});
  const auto matches = match_layers(recipe, {"layers.0.x", "layers.1.x", "layers.10.x"});
  EXPECT_EQ(matches[0].matcher, "");
  EXPECT_EQ(matches[1].matcher, "OddLayers()");
  EXPECT_EQ(matches[1].config_key, "fp8");
  EXPECT_EQ(matches[2].matcher, "tens");
  EXPECT_EQ(to_string(matches),
            "layers.0.x   no rule\n"
            "layers.1.x   OddLayers()  fp8\n"
            "layers.10.x  tens         bf16\n");
  EXPECT_NE(recipe.repr().find("OddLayers()"), std::string::npos);
}

}  // namespace
}  // namespace kitchen
