#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/config/yaml.h"
#include "kitchen/extension/q_attention_params_config_schema.h"
#include "kitchen/extension/q_flash_attention_params_config_schema.h"
#include "kitchen/extension/q_linear_params_config_schema.h"
#include "kitchen/recipes/predefined.h"
#include "support/expect_error.h"

#include <gtest/gtest.h>

#include <typeinfo>
#include <vector>

namespace kitchen {
namespace {

using testing::throws;

ConfigDict dict_of(const std::string& text) {
  return *parse_yaml(text, "recipe.yaml").get_if<ConfigDict>();
}

/// Runs the checks that every leaf schema shares. `field` holds a good value in `good`.
template <class Schema>
void check_shared_rules(const std::string& own, const std::string& other, const std::string& field,
                        const ConfigValue& good_value) {
  const auto parse = [](const ConfigDict& dict) {
    return [dict] { (void)Schema::parse_config_dict(dict); };
  };
  const ConfigDict good{{"kitchen_config_type", own}, {field, good_value}};
  EXPECT_NO_THROW(parse(good)());
  EXPECT_EQ(Schema::get_expected_keys(), (std::set<std::string>{"kitchen_config_type", field}));

  EXPECT_TRUE(throws<KeyError>(
      parse({}),
      {"Missing required keys", field < "kitchen_config_type" ? field + ", kitchen_config_type"
                                                              : "kitchen_config_type, " + field}));
  EXPECT_TRUE(throws<KeyError>(parse({{"kitchen_config_type", own}}),
                               {"Missing required keys: [" + field + "]"}));
  EXPECT_TRUE(throws<KeyError>(parse({{field, good_value}}),
                               {"Missing required keys: [kitchen_config_type]"}));
  // Missing is told before unexpected, and unexpected before the type.
  EXPECT_TRUE(throws<KeyError>(parse({{"kitchen_config_type", own}, {"zzz", 1}}),
                               {"Missing required keys"}));
  EXPECT_TRUE(throws<KeyError>(
      parse({{"kitchen_config_type", "Bad"}, {field, good_value}, {"z", 1}, {"a", 1}}),
      {"Unexpected keys in config: [a, z]"}));
  EXPECT_TRUE(throws<KeyError>(
      parse({{"kitchen_config_type", own}, {field, good_value}, {"training_recipe", good_value}}),
      {"Unexpected keys in config", "training_recipe"}));
  for (const ConfigValue& bad : {ConfigValue("Bad"), ConfigValue(3), ConfigValue(nullptr)}) {
    // The type is told before the field.
    EXPECT_TRUE(throws<ValueError>(parse({{"kitchen_config_type", bad}, {field, ConfigList{}}}),
                                   {"Unsupported config type", bad.repr()}));
  }
  EXPECT_TRUE(throws<ValueError>(parse({{"kitchen_config_type", other}, {field, good_value}}),
                                 {"Parsing config dict of incorrect type", other}));
  EXPECT_TRUE(
      throws<ValueError>(parse({{"kitchen_config_type", "CompoundParams"}, {field, good_value}}),
                         {"Parsing config dict of incorrect type", "CompoundParams"}));
  EXPECT_TRUE(
      throws<TypeError>([&] { (void)Schema(from_string<KitchenConfigType>(other), good_value); },
                        {"kitchen_config_type must be " + own, other}));
}

/// The values that a recipe number refuses, by a schema's direct constructor and by its parser.
template <class Schema>
void check_bad_indices(KitchenConfigType type) {
  const std::vector<ConfigValue> bad = {0,    -1,    "x",     "2",           2.0,         2.5,
                                        true, false, nullptr, ConfigList{1}, ConfigDict{}};
  for (const ConfigValue& value : bad) {
    EXPECT_TRUE(throws<ValueError>(
        [&] { (void)Schema(type, value); },
        {"recipe_idx must be a positive integer", value.repr(), value.type_name()}));
    const ConfigDict dict{{"kitchen_config_type", to_string(type)}, {"recipe_idx", value}};
    EXPECT_TRUE(throws<ValueError>([&] { (void)Schema::parse_config_dict(dict); },
                                   {"positive integer", value.repr()}));
  }
}

// labels: QLinearParamsConfigSchema.parse_config_dict QLinearParamsConfigSchema.get_expected_keys C17
TEST(QLinearParamsConfigSchema, SharedRulesHoldInOrder) {
  check_shared_rules<QLinearParamsConfigSchema>("QLinearParams", "QAttentionParams", "recipe_idx",
                                                2);
}

// labels: QAttentionParamsConfigSchema.parse_config_dict QAttentionParamsConfigSchema.get_expected_keys D1
TEST(QAttentionParamsConfigSchema, SharedRulesHoldInOrderAndTheLinearTypeIsRefused) {
  check_shared_rules<QAttentionParamsConfigSchema>("QAttentionParams", "QLinearParams",
                                                   "recipe_idx", 6001);
}

// labels: QFlashAttentionParamsConfigSchema.parse_config_dict QFlashAttentionParamsConfigSchema.get_expected_keys
TEST(QFlashAttentionParamsConfigSchema, SharedRulesHoldInOrder) {
  check_shared_rules<QFlashAttentionParamsConfigSchema>("QFlashAttentionParams", "QLinearParams",
                                                        "recipe_name", "any");
}

// labels: QLinearParamsConfigSchema.__post_init__ QAttentionParamsConfigSchema.__post_init__ D12 C17 C16
TEST(ConfigSchema, RecipeNumbersMustBePositiveIntegers) {
  check_bad_indices<QLinearParamsConfigSchema>(KitchenConfigType::QLINEAR_PARAMS);
  check_bad_indices<QAttentionParamsConfigSchema>(KitchenConfigType::QATTENTION_PARAMS);
}

// labels: QFlashAttentionParamsConfigSchema.__post_init__ QFlashAttentionParamsConfigSchema.recipe_name
TEST(QFlashAttentionParamsConfigSchema, NameMustBeAStringAndIsKeptUnchanged) {
  const KitchenConfigType type = KitchenConfigType::QFLASHATTENTION_PARAMS;
  EXPECT_TRUE(throws<ValueError>([&] { (void)QFlashAttentionParamsConfigSchema(type, 123); },
                                 {"recipe_name must be a string", "123"}));
  EXPECT_TRUE(throws<ValueError>([&] { (void)QFlashAttentionParamsConfigSchema(type, nullptr); },
                                 {"recipe_name must be a string"}));
  const QFlashAttentionParamsConfigSchema schema(type, " Any name ");
  EXPECT_EQ(schema.recipe_name, " Any name ");
  EXPECT_EQ(schema.kitchen_config_type, type);
  const QFlashAttentionParamsConfigSchema empty(type, "");
  EXPECT_TRUE(throws<ValueError>([&] { (void)empty.to_kitchen_qfa(); }, {"\"\""}));
}

// labels: QLinearParamsConfigSchema.to_kitchen_qlinear QLinearParamsConfigSchema.kitchen_config_type QLinearParamsConfigSchema.recipe_idx C16
TEST(QLinearParamsConfigSchema, ConvertsToTheRecipeOfItsNumber) {
  const auto schema = QLinearParamsConfigSchema::parse_config_dict(
      dict_of("{kitchen_config_type: QLinearParams, recipe_idx: 2}"));
  EXPECT_EQ(schema.kitchen_config_type, KitchenConfigType::QLINEAR_PARAMS);
  EXPECT_EQ(schema.recipe_idx, 2);
  const auto params = schema.to_kitchen_qlinear();
  const auto predefined = get_qlinear_params_from_predefined(QuantizeRecipe::FP8_CS);
  EXPECT_EQ(params, predefined);
  EXPECT_EQ(params->x_params, predefined->x_params);
  EXPECT_EQ(params->w_params, predefined->w_params);
  EXPECT_EQ(params->g_params, predefined->g_params);
  EXPECT_EQ(params->mm_fprop, predefined->mm_fprop);
  EXPECT_EQ(params->mm_dgrad, predefined->mm_dgrad);
  EXPECT_EQ(params->mm_wgrad, predefined->mm_wgrad);
  EXPECT_EQ(params->autograd_function_implementation, AutogradFunctionImplementation::QUANTIZED);
  // An unknown number parses; the look-up refuses it.
  const auto unknown = QLinearParamsConfigSchema::parse_config_dict(
      dict_of("\nkitchen_config_type: QLinearParams\nrecipe_idx: 9999\n"));
  EXPECT_TRUE(throws<ValueError>([&] { (void)unknown.to_kitchen_qlinear(); },
                                 {"9999", "2 (fp8_cs)", "recipe.yaml, line 3"}));
}

// labels: QAttentionParamsConfigSchema.to_kitchen_qattention QAttentionParamsConfigSchema.kitchen_config_type QAttentionParamsConfigSchema.recipe_idx
TEST(QAttentionParamsConfigSchema, ConvertsToTheRecipeOfItsNumber) {
  const QAttentionParamsConfigSchema schema(KitchenConfigType::QATTENTION_PARAMS, 6001);
  EXPECT_EQ(schema.kitchen_config_type, KitchenConfigType::QATTENTION_PARAMS);
  EXPECT_EQ(schema.recipe_idx, 6001);
  const auto params = schema.to_kitchen_qattention();
  const auto predefined =
      get_qattention_params_from_predefined(QuantizeRecipeAttnBMM::MXFP8_EMULATION);
  for (const bool is_bmm2 : {false, true}) {
    EXPECT_EQ(typeid(params->get_quantizer(is_bmm2)), typeid(predefined->get_quantizer(is_bmm2)));
  }
  const auto bf16 = QAttentionParamsConfigSchema(KitchenConfigType::QATTENTION_PARAMS, 1);
  EXPECT_FALSE(bf16.to_kitchen_qattention()->get_quantizer(false).quantized());
  EXPECT_FALSE(bf16.to_kitchen_qattention()->get_quantizer(true).quantized());
}

// labels: QFlashAttentionParamsConfigSchema.to_kitchen_qfa QFlashAttentionParamsConfigSchema.kitchen_config_type C16
TEST(QFlashAttentionParamsConfigSchema, ConvertsToTheRecipeOfItsName) {
  for (const bool natural : {false, true}) {
    const std::string name =
        natural ? "triton_fa_bf16_for_all_natural" : "triton_fa_bf16_for_all_base_2";
    const auto schema = QFlashAttentionParamsConfigSchema::parse_config_dict(
        {{"kitchen_config_type", "QFlashAttentionParams"}, {"recipe_name", name}});
    EXPECT_EQ(schema.kitchen_config_type, KitchenConfigType::QFLASHATTENTION_PARAMS);
    const auto params = schema.to_kitchen_qfa();
    EXPECT_EQ(params, schema.to_kitchen_qfa());
    EXPECT_EQ(params->backend, "triton");
    EXPECT_EQ(params->qk_dot_precisions, "bf16@bf16");
    EXPECT_EQ(params->pv_dot_precisions, "bf16@bf16");
    EXPECT_EQ(params->use_natural_transcendental_func, natural);
  }
  const auto unknown = QFlashAttentionParamsConfigSchema::parse_config_dict(dict_of(
      "kitchen_config_type: QFlashAttentionParams\nrecipe_name: triton_fa_bf16_for_all_naturel\n"));
  EXPECT_TRUE(
      throws<ValueError>([&] { (void)unknown.to_kitchen_qfa(); },
                         {"triton_fa_bf16_for_all_naturel",
                          "nearest: triton_fa_bf16_for_all_natural", "recipe.yaml, line 2"}));
}

// labels: C01 C23
TEST(ConfigSchema, MisspeltAndMissingKeysTellFileLineAndTheRightKey) {
  EXPECT_TRUE(throws<KeyError>(
      [] {
        (void)QLinearParamsConfigSchema::parse_config_dict(
            dict_of("kitchen_config_type: QLinearParams\nrecipe_index: 2\n"));
      },
      {"Missing required keys: [recipe_idx]", "\"recipe_index\"", "recipe.yaml, line 2",
       "did you mean \"recipe_idx\"?"}));
  EXPECT_TRUE(throws<KeyError>(
      [] {
        (void)QLinearParamsConfigSchema::parse_config_dict(
            dict_of("kitchen_config_type: QLinearParams\nrecipe_idx: 2\nrecipe_idxx: 2\n"));
      },
      {"Unexpected keys in config: [recipe_idxx]", "recipe.yaml, line 3",
       "did you mean \"recipe_idx\"?"}));
  EXPECT_TRUE(throws<ValueError>(
      [] {
        (void)QLinearParamsConfigSchema::parse_config_dict(
            dict_of("{kitchen_config_type: QLinear, recipe_idx: 2}"));
      },
      {"Unsupported config type", "\"QLinear\" (string)", "line 1", "did you mean \"QLinear"}));
}

// labels: KitchenConfigType KitchenConfigType.QLINEAR_PARAMS KitchenConfigType.QATTENTION_PARAMS KitchenConfigType.QFLASHATTENTION_PARAMS KitchenConfigType.COMPOUND_PARAMS
TEST(KitchenConfigType, TextsAreExact) {
  const std::vector<std::pair<KitchenConfigType, std::string>> table = {
      {KitchenConfigType::QLINEAR_PARAMS, "QLinearParams"},
      {KitchenConfigType::QATTENTION_PARAMS, "QAttentionParams"},
      {KitchenConfigType::QFLASHATTENTION_PARAMS, "QFlashAttentionParams"},
      {KitchenConfigType::COMPOUND_PARAMS, "CompoundParams"}};
  for (const auto& [type, text] : table) {
    EXPECT_EQ(to_string(type), text);
    EXPECT_EQ(from_string<KitchenConfigType>(text), type);
  }
  for (const char* bad : {"qlinearparams", "QLinear", "", "QLINEAR_PARAMS", "QLinearRecipe"}) {
    EXPECT_TRUE(throws<ValueError>([&] { (void)from_string<KitchenConfigType>(bad); },
                                   {bad, "KitchenConfigType", "CompoundParams"}));
  }
}

// labels: logger _KITCHEN_CONFIG_TYPE_KEY HAVE_KITCHEN D37
TEST(KitchenConfigType, DataOfTheModule) {
  EXPECT_STREQ(KITCHEN_CONFIG_TYPE_KEY, "kitchen_config_type");
  EXPECT_TRUE(HAVE_KITCHEN);
  EXPECT_EQ(logger().name(), "core.extensions.kitchen");
}

}  // namespace
}  // namespace kitchen
