#include "kitchen/extension/compound_params_config_schema.h"

#include "kitchen/base/error.h"
#include "support/expect_error.h"

#include <gtest/gtest.h>

namespace kitchen {
namespace {

using testing::throws;

const ConfigDict kLinear{{"kitchen_config_type", "QLinearParams"}, {"recipe_idx", 2}};
const ConfigDict kAttention{{"kitchen_config_type", "QAttentionParams"}, {"recipe_idx", 6001}};
const ConfigDict kFlash{{"kitchen_config_type", "QFlashAttentionParams"},
                        {"recipe_name", "triton_fa_bf16_for_all_natural"}};
const ConfigDict kNamedLinear{{"kitchen_config_type", "QLinearRecipe"}, {"recipe", "fp8_block"}};

ConfigDict compound(ConfigList parts) {
  return {{"kitchen_config_type", "CompoundParams"}, {"configs", std::move(parts)}};
}

CompoundParamsConfigSchema parse(ConfigList parts) {
  return CompoundParamsConfigSchema::parse_config_dict(compound(std::move(parts)));
}

// labels: CompoundParamsConfigSchema.parse_config_dict CompoundParamsConfigSchema.q_linear_params CompoundParamsConfigSchema.q_attention_params CompoundParamsConfigSchema.q_fa_params CompoundParamsConfigSchema.configs CompoundParamsConfigSchema.kitchen_config_type
TEST(CompoundParamsConfigSchema, BothDocumentedCombinationsParse) {
  const auto with_attention = parse({kLinear, kAttention});
  EXPECT_EQ(with_attention.kitchen_config_type, KitchenConfigType::COMPOUND_PARAMS);
  EXPECT_EQ(with_attention.configs, (ConfigList{kLinear, kAttention}));
  EXPECT_TRUE(with_attention.q_linear_params);
  EXPECT_TRUE(with_attention.q_attention_params);
  EXPECT_FALSE(with_attention.q_fa_params);

  const auto with_flash = parse({kFlash, kLinear});
  EXPECT_EQ(with_flash.configs, (ConfigList{kFlash, kLinear}));
  EXPECT_TRUE(with_flash.q_linear_params);
  EXPECT_FALSE(with_flash.q_attention_params);
  EXPECT_TRUE(with_flash.q_fa_params);
}

// labels: CompoundParamsConfigSchema.get_qlinear_params CompoundParamsConfigSchema.get_qattention_params CompoundParamsConfigSchema.get_qfa_params
TEST(CompoundParamsConfigSchema, GettersGiveThePartsAndNullForTheOthers) {
  const auto all = parse({kLinear, kAttention, kFlash});
  EXPECT_EQ(all.get_qlinear_params(), all.q_linear_params->to_kitchen_qlinear());
  EXPECT_EQ(all.get_qattention_params(), all.q_attention_params->to_kitchen_qattention());
  EXPECT_EQ(all.get_qfa_params(), all.q_fa_params->to_kitchen_qfa());
  EXPECT_NE(all.get_qlinear_params(), nullptr);
  const auto none = parse({});
  EXPECT_EQ(none.get_qlinear_params(), nullptr);
  EXPECT_EQ(none.get_qattention_params(), nullptr);
  EXPECT_EQ(none.get_qfa_params(), nullptr);
  const auto one = parse({kAttention});
  EXPECT_EQ(one.get_qlinear_params(), nullptr);
  EXPECT_NE(one.get_qattention_params(), nullptr);
  EXPECT_EQ(one.get_qfa_params(), nullptr);
}

// labels: CompoundParamsConfigSchema.parse_config_dict CompoundParamsConfigSchema.get_expected_keys
TEST(CompoundParamsConfigSchema, DerivedMembersAreNoKeys) {
  EXPECT_EQ(CompoundParamsConfigSchema::get_expected_keys(),
            (std::set<std::string>{"kitchen_config_type", "configs"}));
  ConfigDict dict = compound({kLinear});
  dict.set("q_linear_params", kLinear);
  EXPECT_TRUE(throws<KeyError>([&] { (void)CompoundParamsConfigSchema::parse_config_dict(dict); },
                               {"Unexpected keys in config: [q_linear_params]"}));
  EXPECT_TRUE(throws<KeyError>(
      [] {
        (void)CompoundParamsConfigSchema::parse_config_dict({{"configs", ConfigList{}}});
      },
      {"Missing required keys: [kitchen_config_type]"}));
  EXPECT_TRUE(throws<ValueError>(
      [] {
        (void)CompoundParamsConfigSchema::parse_config_dict(
            {{"kitchen_config_type", "QLinearParams"}, {"configs", 5}});
      },
      {"Parsing config dict of incorrect type", "QLinearParams"}));
}

// labels: CompoundParamsConfigSchema.configs CompoundParamsConfigSchema.__post_init__ D2
TEST(CompoundParamsConfigSchema, ConfigsMustBeAListOfMappings) {
  const KitchenConfigType type = KitchenConfigType::COMPOUND_PARAMS;
  const std::vector<ConfigValue> no_lists = {kLinear, 5, "text", nullptr, true};
  for (const ConfigValue& bad : no_lists) {
    EXPECT_TRUE(throws<TypeError>([&] { (void)CompoundParamsConfigSchema(type, bad); },
                                  {"configs must be a list", bad.repr()}));
  }
  EXPECT_TRUE(throws<TypeError>(
      [&] {
        (void)CompoundParamsConfigSchema(type, ConfigList{kLinear, 7});
      },
      {"configs[1]", "7"}));
  EXPECT_TRUE(throws<TypeError>(
      [] { (void)CompoundParamsConfigSchema(KitchenConfigType::QLINEAR_PARAMS, 5); },
      {"kitchen_config_type must be CompoundParams", "QLinearParams"}));
}

// labels: CompoundParamsConfigSchema.__post_init__
TEST(CompoundParamsConfigSchema, PartsAreCheckedInOrder) {
  EXPECT_TRUE(throws<KeyError>(
      [] {
        (void)parse({kLinear, ConfigDict{{"recipe_idx", 2}}});
      },
      {"Missing required keys: [kitchen_config_type]", "configs[1]"}));
  EXPECT_TRUE(throws<ValueError>([] { (void)parse({compound({kLinear})}); },
                                 {"Unsupported config type", "CompoundParams"}));
  EXPECT_TRUE(throws<ValueError>(
      [] {
        (void)parse({ConfigDict{{"kitchen_config_type", "Bad"}}});
      },
      {"Unsupported config type", "\"Bad\""}));
  EXPECT_TRUE(throws<ValueError>(
      [] {
        (void)parse({ConfigDict{{"kitchen_config_type", 4}}});
      },
      {"Unsupported config type", "4"}));
  EXPECT_TRUE(throws<ValueError>(
      [] {
        (void)parse({ConfigDict{{"kitchen_config_type", "QLinearParams"}, {"recipe_idx", 0}},
                     ConfigDict{{"kitchen_config_type", "Bad"}}});
      },
      {"recipe_idx must be a positive integer"}));
  EXPECT_TRUE(throws<KeyError>(
      [] {
        (void)parse({ConfigDict{{"kitchen_config_type", "QLinearParams"}, {"x", 0}}});
      },
      {"Missing required keys: [recipe_idx]"}));
}

// labels: CompoundParamsConfigSchema.__post_init__ D13
TEST(CompoundParamsConfigSchema, ASecondPartOfOneKindIsRefused) {
  EXPECT_TRUE(throws<ValueError>(
      [] {
        (void)parse({kLinear, kLinear});
      },
      {"Duplicate config type", "QLinearParams"}));
  EXPECT_TRUE(throws<ValueError>(
      [] {
        (void)parse({kAttention, kFlash, kAttention});
      },
      {"Duplicate config type", "QAttentionParams"}));
  EXPECT_TRUE(throws<ValueError>(
      [] {
        (void)parse({kFlash, kFlash});
      },
      {"Duplicate config type", "QFlashAttentionParams"}));
  EXPECT_TRUE(throws<ValueError>(
      [] {
        (void)parse({kNamedLinear, kLinear});
      },
      {"Duplicate config type", "QLinearParams"}));
  EXPECT_TRUE(throws<ValueError>(
      [] {
        (void)parse({kLinear, kNamedLinear});
      },
      {"Duplicate config type", "QLinearRecipe"}));
}

// labels: CompoundParamsConfigSchema.__post_init__ QLinearRecipe
TEST(CompoundParamsConfigSchema, ExtensionTypesAreParts) {
  const auto mixed = parse({kNamedLinear, kAttention});
  EXPECT_FALSE(mixed.q_linear_params);
  ASSERT_NE(mixed.get_qlinear_params(), nullptr);
  EXPECT_EQ(mixed.get_qlinear_params()->name, "fp8_block");
  EXPECT_NE(mixed.get_qattention_params(), nullptr);
}

}  // namespace
}  // namespace kitchen
