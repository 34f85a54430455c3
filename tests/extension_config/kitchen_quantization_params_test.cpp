#include "kitchen/extension/kitchen_quantization_params.h"

#include "kitchen/base/context.h"
#include "kitchen/base/error.h"
#include "kitchen/base/rank_state.h"
#include "kitchen/config/yaml.h"
#include "kitchen/extension/get_extra_kitchen_kwargs.h"
#include "kitchen/recipes/predefined.h"
#include "kitchen/reference/cpu_backend.h"
#include "support/expect_error.h"

#include <gtest/gtest.h>

namespace kitchen {
namespace {

using testing::throws;

const MatchContext kContext{"decoder.layers.1.mlp.linear_fc1", 1};

KitchenQuantizationParams parse(const ConfigDict& dict) {
  return KitchenQuantizationParams::parse_from_config(QuantizationConfig(dict, kContext, "fp8"));
}

KitchenQuantizationParams parse(const std::string& yaml) {
  return parse(*parse_yaml(yaml, "recipe.yaml").get_if<ConfigDict>());
}

// labels: KitchenQuantizationParams.qlinear_params KitchenQuantizationParams.qattention_params KitchenQuantizationParams.qfa_params KitchenQuantizationParams.match_input KitchenQuantizationParams.params_config_key
TEST(KitchenQuantizationParams, EachTypeSetsItsPointersAndKeepsTheContext) {
  const char* const linear = "{kitchen_config_type: QLinearParams, recipe_idx: 2}";
  const char* const attention = "{kitchen_config_type: QAttentionParams, recipe_idx: 6001}";
  const char* const flash =
      "{kitchen_config_type: QFlashAttentionParams, recipe_name: triton_fa_bf16_for_all_natural}";
  const auto compound = [](const std::string& parts) {
    return "{kitchen_config_type: CompoundParams, configs: [" + parts + "]}";
  };
  const std::vector<std::tuple<std::string, bool, bool, bool>> table = {
      {linear, true, false, false},
      {attention, false, true, false},
      {flash, false, false, true},
      {compound(linear), true, false, false},
      {compound(std::string(linear) + ", " + attention), true, true, false},
      {compound(std::string(linear) + ", " + flash), true, false, true},
      {compound(""), false, false, false}};
  for (const auto& [yaml, has_linear, has_attention, has_flash] : table) {
    SCOPED_TRACE(yaml);
    const KitchenQuantizationParams params = parse(yaml);
    EXPECT_EQ(params.qlinear_params != nullptr, has_linear);
    EXPECT_EQ(params.qattention_params != nullptr, has_attention);
    EXPECT_EQ(params.qfa_params != nullptr, has_flash);
    EXPECT_EQ(params.match_input, kContext);
    EXPECT_EQ(params.params_config_key, "fp8");
  }
  EXPECT_EQ(parse(linear).qlinear_params, get_qlinear_params_from_qat_params(2));
}

// labels: KitchenQuantizationParams
TEST(KitchenQuantizationParams, FieldOrderIsPartOfTheContract) {
  const auto linear = get_qlinear_params_from_qat_params(1);
  const auto attention = get_qattention_params_from_qat_params(1);
  const KitchenQuantizationParams params{linear, kContext, "key", attention, nullptr};
  EXPECT_EQ(params.qlinear_params, linear);
  EXPECT_EQ(params.params_config_key, "key");
  EXPECT_EQ(params.qattention_params, attention);
}

// labels: KitchenQuantizationParams.parse_from_config C23 D26 D27
TEST(KitchenQuantizationParams, WhatIsNoConfigIsRefused) {
  EXPECT_TRUE(throws<AssertionError>(
      [] { (void)KitchenQuantizationParams::parse_from_config(std::nullopt); },
      {"Kitchen extension expects a quantization config", "\"*\""}));
  // ValueError and not KeyError at this level.
  EXPECT_TRUE(throws<ValueError>(
      [] {
        (void)parse(ConfigDict{{"recipe_idx", 2}});
      },
      {"must have 'kitchen_config_type' key", "config fp8"}));
  EXPECT_TRUE(
      throws<ValueError>([] { (void)parse("kitchen_config_typ: QLinearParams\n"); },
                         {"must have 'kitchen_config_type' key", "line 1", "did you mean"}));
  EXPECT_TRUE(throws<ValueError>(
      [] { (void)parse("{kitchen_config_type: Bad}"); },
      {"Unsupported config type", "\"Bad\"", "QLinearParams", "QAttentionRecipe", "config fp8"}));
  EXPECT_TRUE(throws<ValueError>([] { (void)parse("{kitchen_config_type: 3}"); },
                                 {"Unsupported config type", "3 (integer)"}));
}

// labels: KitchenQuantizationParams.parse_from_config C23 C17
TEST(KitchenQuantizationParams, SchemaErrorsKeepTheirTypeAndNameTheConfig) {
  const ConfigValue file = parse_yaml(
      "configs:\n  fp8: {kitchen_config_type: QLinearParams}\n"
      "  fa:\n    kitchen_config_type: QFlashAttentionParams\n",
      "recipe.yaml");
  const auto* configs = file.get_if<ConfigDict>()->at("configs").get_if<ConfigDict>();
  const auto parse_config = [&](const std::string& name) {
    return [configs, name] {
      (void)KitchenQuantizationParams::parse_from_config(
          QuantizationConfig(*configs->at(name).get_if<ConfigDict>(), kContext, name));
    };
  };
  EXPECT_TRUE(throws<KeyError>(parse_config("fp8"),
                               {"Missing required keys: [recipe_idx]", "key recipe_idx is missing",
                                "recipe.yaml, line 2", "config fp8"}));
  EXPECT_TRUE(throws<KeyError>(parse_config("fa"),
                               {"key recipe_name is missing", "recipe.yaml, line 3", "config fa"}));
  EXPECT_TRUE(throws<ValueError>(
      [] { (void)parse("{kitchen_config_type: QLinearParams, recipe_idx: two}"); },
      {"positive integer", "\"two\" (string)", "line 1", "config fp8"}));
  EXPECT_TRUE(
      throws<TypeError>([] { (void)parse("{kitchen_config_type: CompoundParams, configs: {}}"); },
                        {"configs must be a list", "{} (mapping)"}));
  EXPECT_TRUE(throws<KeyError>(
      [] { (void)parse("{kitchen_config_type: QLinearParams, recipe_idx: 2, configs: []}"); },
      {"Unexpected keys in config: [configs]"}));
}

// labels: _get_extra_kitchen_kwargs
TEST(GetExtraKitchenKwargs, TellsDtypeAndDevice) {
  const RankScope own_rank(std::make_shared<RankState>());
  set_default_context(reference::make_cpu_context());
  TransformerConfig config;
  config.params_dtype = DType::bfloat16;
  EXPECT_EQ(_get_extra_kitchen_kwargs(config).params_dtype, DType::bfloat16);
  EXPECT_EQ(_get_extra_kitchen_kwargs(config).device, Device::cpu());
  config.init_model_with_meta_device = true;
  EXPECT_EQ(_get_extra_kitchen_kwargs(config).device, Device::meta());
  config.use_cpu_initialization = true;
  EXPECT_TRUE(throws<ValueError>([&] { (void)_get_extra_kitchen_kwargs(config); },
                                 {"use_cpu_initialization"}));
}

}  // namespace
}  // namespace kitchen
