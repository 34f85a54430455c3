#include "kitchen/config/kitchen_flags.h"

#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "support/expect_error.h"
#include "support/temporary_file.h"

#include <gtest/gtest.h>

namespace kitchen {
namespace {

using testing::TemporaryFile;
using testing::throws;

// labels: Flags kitchen_quantization_recipe_config
TEST(KitchenFlags, RecipeNumberSetsTheOneRuleRecipe) {
  TransformerConfig config;
  KitchenFlags flags;
  flags.kitchen_recipe_number = 2;
  apply_kitchen_flags(flags, config);
  EXPECT_TRUE(config.use_kitchen);
  EXPECT_FALSE(config.use_kitchen_attention);
  ASSERT_NE(config.quant_recipe, nullptr);
  EXPECT_EQ(config.quant_recipe->match({"x", std::nullopt})->config,
            (ConfigDict{{"kitchen_config_type", "QLinearParams"}, {"recipe_idx", 2}}));
}

// labels: Flags load_quantization_recipe
TEST(KitchenFlags, ConfigFileIsLoaded) {
  const TemporaryFile file("r.yaml",
                           "configs: {a: {x: 1}}\n"
                           "matchers: {m: {type: glob, pattern: '*', config: a, enabled: true}}\n");
  TransformerConfig config;
  KitchenFlags flags;
  flags.kitchen_config_file = file.path();
  flags.use_kitchen_attention = true;
  flags.kitchen_attention_backend = "fa";
  LogCapture log;
  apply_kitchen_flags(flags, config);
  EXPECT_TRUE(config.use_kitchen);
  EXPECT_TRUE(config.use_kitchen_attention);
  EXPECT_EQ(config.kitchen_attention_backend, "fa");
  EXPECT_EQ(config.quant_recipe->match({"x", std::nullopt})->config_key, "a");
  EXPECT_EQ(log.count(LogLevel::warning, ""), 0) << log.text();
}

// labels: Flags
TEST(KitchenFlags, TwoRecipeFlagsExcludeEachOther) {
  TransformerConfig config;
  KitchenFlags flags;
  flags.kitchen_config_file = "never_opened.yaml";
  flags.kitchen_recipe_number = 2;
  EXPECT_TRUE(
      throws<ValueError>([&] { apply_kitchen_flags(flags, config); },
                         {"--kitchen-recipe-number", "--kitchen-config-file", "not allowed"}));
  flags.kitchen_config_file.reset();
  flags.kitchen_recipe_name = "fp8_block";
  EXPECT_TRUE(throws<ValueError>([&] { apply_kitchen_flags(flags, config); },
                                 {"--kitchen-recipe-name", "--kitchen-recipe-number"}));
  EXPECT_FALSE(config.use_kitchen);
}

// labels: Flags
TEST(KitchenFlags, SecondSourceOfARecipeIsRefused) {
  TransformerConfig config;
  config.quant_recipe = std::make_shared<const RecipeConfig>(kitchen_quantization_recipe_config(1));
  KitchenFlags flags;
  EXPECT_NO_THROW(apply_kitchen_flags(flags, config));
  flags.kitchen_recipe_number = 2;
  EXPECT_TRUE(
      throws<AssertionError>([&] { apply_kitchen_flags(flags, config); }, {"already configured"}));
}

// labels: Flags D17 D40
TEST(KitchenFlags, AttentionAloneWarnsAndBadBackendsAreRefused) {
  TransformerConfig config;
  KitchenFlags flags;
  EXPECT_EQ(flags.kitchen_attention_backend, "sdpa");
  flags.use_kitchen_attention = true;
  LogCapture log;
  apply_kitchen_flags(flags, config);
  EXPECT_FALSE(config.use_kitchen);
  EXPECT_EQ(log.count(LogLevel::warning, "--use-kitchen-attention has no effect"), 1);
  flags.kitchen_attention_backend = "flash";
  EXPECT_TRUE(
      throws<ValueError>([&] { apply_kitchen_flags(flags, config); }, {"\"flash\"", "sdpa, fa"}));
}

}  // namespace
}  // namespace kitchen
