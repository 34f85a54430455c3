#include "kitchen/base/error.h"
#include "kitchen/config/yaml.h"
#include "kitchen/extension/kitchen_quantization_params.h"
#include "kitchen/extension/q_linear_recipe.h"
#include "kitchen/recipes/predefined.h"
#include "support/expect_error.h"

#include <gtest/gtest.h>

#include <typeinfo>

namespace kitchen {
namespace {

using testing::throws;

KitchenQuantizationParams parse(const std::string& type, const std::string& recipe) {
  const ConfigValue dict =
      parse_yaml("kitchen_config_type: " + type + "\nrecipe: " + recipe + "\n", "r.yaml");
  return KitchenQuantizationParams::parse_from_config(
      QuantizationConfig(*dict.get_if<ConfigDict>(), {"m", std::nullopt}, "mine"));
}

// labels: QLinearRecipe
TEST(QLinearRecipe, NamesAreLookedUp) {
  const auto params = parse("QLinearRecipe", "fp8_block");
  EXPECT_EQ(params.qlinear_params, get_qlinear_params_from_recipe_name("fp8_block"));
  EXPECT_EQ(params.qattention_params, nullptr);
  EXPECT_EQ(params.qfa_params, nullptr);
  EXPECT_TRUE(
      throws<ValueError>([] { (void)parse("QLinearRecipe", "fp8_blok"); },
                         {"fp8_blok", "nearest: fp8_block", "r.yaml, line 2", "config mine"}));
}

// labels: QLinearRecipe
TEST(QLinearRecipe, DescriptionsOfPredefinedRecipesEqualThem) {
  const auto described = [](const std::string& text) {
    return *parse("QLinearRecipe", text).qlinear_params;
  };
  EXPECT_EQ(described("{x: {format: e4m3, scaling: tensor_current},"
                      " w: {format: e4m3, scaling: tensor_current},"
                      " dy: {format: e5m2, scaling: tensor_current},"
                      " fprop: {accumulate: fast}, dgrad: {accumulate: promoted},"
                      " wgrad: {quantized: true, accumulate: promoted}}"),
            *get_qlinear_params_from_recipe_name("fp8_cs"));
  EXPECT_EQ(described("{x: {format: e2m1, scaling: nvfp4_1d, rht: true},"
                      " w: {format: e2m1, scaling: nvfp4_2d},"
                      " dy: {format: e2m1, scaling: nvfp4_1d, rht: true, stochastic: true},"
                      " backend: emulation}"),
            *get_qlinear_params_from_recipe_name("nvfp4_rht_2d_sr"));
  EXPECT_EQ(described("{x: {format: int8, scaling: row}, w: {format: int8, scaling: row}}"),
            *get_qlinear_params_from_recipe_name("int8_row"));
  EXPECT_EQ(described("{}"), *get_qlinear_params_from_recipe_name("bf16"));
  EXPECT_EQ(described("{name: abc}").name, "abc");
}

// labels: QLinearRecipe
TEST(QLinearRecipe, EveryOperandKeyIsRead) {
  const auto params = parse("QLinearRecipe",
                            "{x: {format: e4m3, scaling: tensor_delayed,"
                            " window: 16, margin: 1, algorithm: most_recent},"
                            " w: {format: e4m3, scaling: block128x128, convention: deepgemm,"
                            " pow2: true},"
                            " dy: {format: e5m2, scaling: mx32, mx_scale: ocp_floor}}")
                          .qlinear_params;
  QuantizerParams x;
  x.format = "e4m3";
  x.scaling = Scaling::tensor_delayed;
  x.window = 16;
  x.margin = 1;
  x.algorithm = "most_recent";
  EXPECT_EQ(params->x_params, x);
  EXPECT_EQ(params->w_params.convention, BlockConvention::deepgemm);
  EXPECT_TRUE(params->w_params.pow2);
  EXPECT_EQ(params->g_params.mx_scale, MxScaleRule::ocp_floor);
  const auto row = parse("QLinearRecipe", "{x: {format: e4m3, scaling: row, eps: 1e-12}}");
  EXPECT_EQ(row.qlinear_params->x_params.eps, 1e-12);
}

// labels: QLinearRecipe C17
TEST(QLinearRecipe, WhatIsWrongIsRefusedWithKeyAndLine) {
  const auto refused = [](const std::string& recipe) {
    return [recipe] { (void)parse("QLinearRecipe", recipe); };
  };
  EXPECT_TRUE(throws<TypeError>(refused("5"), {"recipe must be a name", "5 (integer)", "line 2"}));
  EXPECT_TRUE(throws<KeyError>(refused("{X: {}}"), {"unknown key \"X\"", "line 2", "x, w, dy"}));
  EXPECT_TRUE(throws<KeyError>(refused("{x: {fromat: e4m3}}"),
                               {"unknown key \"fromat\"", "did you mean \"format\"?"}));
  EXPECT_TRUE(throws<KeyError>(refused("{fprop: {backend: auto}}"), {"fprop", "\"backend\""}));
  EXPECT_TRUE(throws<ValueError>(refused("{x: {format: e4m3, scaling: tensor}}"),
                                 {"scaling", "\"tensor\"", "tensor_current", "line 2"}));
  EXPECT_TRUE(
      throws<ValueError>(refused("{x: {format: fp8, scaling: row}}"), {"x: format", "\"fp8\""}));
  EXPECT_TRUE(
      throws<ValueError>(refused("{x: {format: e4m3, scaling: tensor_delayed, pow2: true}}"),
                         {"x: pow2", "tensor_delayed"}));
  EXPECT_TRUE(throws<TypeError>(refused("{x: {pow2: 1}}"), {"pow2 must be a bool", "1 (integer)"}));
  EXPECT_TRUE(throws<TypeError>(refused("{x: {eps: 1_0}}"), {"eps must be a number", "\"1_0\""}));
  EXPECT_TRUE(throws<TypeError>(refused("{x: e4m3}"), {"x must be a mapping", "\"e4m3\""}));
  EXPECT_TRUE(
      throws<ValueError>(refused("{x: {format: e4m3, scaling: row}, fprop: {quantized: true}}"),
                         {"fprop", "operand w", "line 2"}));
  EXPECT_TRUE(throws<ValueError>(
      refused(
          "{x: {format: e4m3, scaling: block128x128}, w: {format: e4m3, scaling: block128x128}}"),
      {"square blocks"}));
  const auto parse_dict = [](const ConfigDict& dict) {
    return [dict] { (void)parse_q_linear_recipe(dict); };
  };
  EXPECT_TRUE(throws<KeyError>(parse_dict({{"kitchen_config_type", "QLinearRecipe"}}),
                               {"Missing required keys: [recipe]"}));
  EXPECT_TRUE(throws<KeyError>(
      parse_dict({{"kitchen_config_type", "QLinearRecipe"}, {"recipe", "bf16"}, {"recipe_idx", 2}}),
      {"Unexpected keys in config: [recipe_idx]"}));
}

// labels: QAttentionRecipe
TEST(QAttentionRecipe, NamesOfBothAttentionTablesAreKnown) {
  const auto unfused = parse("QAttentionRecipe", "fp8_cs");
  EXPECT_EQ(unfused.qattention_params, get_qattention_params_from_recipe_name("fp8_cs"));
  EXPECT_EQ(unfused.qfa_params, nullptr);
  EXPECT_EQ(unfused.qlinear_params, nullptr);
  const auto flash = parse("QAttentionRecipe", "fa_fp8_e4m3_base_2");
  EXPECT_EQ(flash.qattention_params, nullptr);
  EXPECT_EQ(flash.qfa_params, get_qfa_params_from_recipe_name("fa_fp8_e4m3_base_2"));
  EXPECT_TRUE(
      throws<ValueError>([] { (void)parse("QAttentionRecipe", "fa_fp8_e4m3_base_3"); },
                         {"mxfp8_emulation", "did you mean \"fa_fp8_e4m3_base_2\"?", "line 2"}));
}

// labels: QAttentionRecipe
TEST(QAttentionRecipe, DescriptionsOfPredefinedRecipesEqualThem) {
  const std::string mx = "{format: e4m3, scaling: mx32}";
  EXPECT_EQ(*parse("QAttentionRecipe", "{qk: " + mx + ", pv: " + mx + ", do: " + mx +
                                           ", ds: " + mx + ", backend: emulation}")
                 .qattention_params,
            *get_qattention_params_from_recipe_name("mxfp8_emulation"));
  EXPECT_EQ(*parse("QAttentionRecipe", "{}").qattention_params,
            *get_qattention_params_from_recipe_name("bf16"));
  const std::string e4m3 = "{format: e4m3, scaling: tensor_current}";
  const std::string e5m2 = "{format: e5m2, scaling: tensor_current}";
  EXPECT_EQ(*parse("QAttentionRecipe", "{qk: " + e4m3 + ", pv: " + e4m3 + ", do: " + e5m2 +
                                           ", ds: " + e5m2 + ", softmax: base_2, p_scale: 256}")
                 .qfa_params,
            *get_qfa_params_from_recipe_name("fa_fp8_e4m3_base_2"));
  const auto half = parse("QAttentionRecipe", "{qk: " + mx + "}").qattention_params;
  EXPECT_EQ(typeid(half->get_quantizer(false)), typeid(MxBmmQuantizer));
  EXPECT_EQ(typeid(half->get_quantizer(true)), typeid(UnquantizedBmm));
}

// labels: QAttentionRecipe
TEST(QAttentionRecipe, WhatIsWrongIsRefused) {
  const auto refused = [](const std::string& recipe) {
    return [recipe] { (void)parse("QAttentionRecipe", recipe); };
  };
  EXPECT_TRUE(throws<KeyError>(refused("{kq: {}}"), {"\"kq\"", "qk"}));
  EXPECT_TRUE(throws<ValueError>(refused("{softmax: base_10}"), {"softmax", "\"base_10\""}));
  EXPECT_TRUE(throws<ValueError>(refused("{softmax: natural, p_scale: 3}"), {"p_scale is 3"}));
  EXPECT_TRUE(throws<ValueError>(
      refused("{softmax: natural, pv: {format: e4m3, scaling: tensor_current}, p_scale: 512}"),
      {"p_scale is 512", "256"}));
  EXPECT_TRUE(throws<ValueError>(refused("{qk: {format: e4m3, scaling: block1x128}}"),
                                 {"block1x128", "mx32", "line 2"}));
  EXPECT_TRUE(throws<ValueError>(
      refused("{qk: {format: e4m3, scaling: mx32}, ds: {format: e4m3, scaling: tensor_current}}"),
      {"gradient", "tensor_current"}));
  EXPECT_TRUE(throws<ValueError>(refused("{softmax: natural, qk: {format: e4m3, scaling: mx32}}"),
                                 {"flash attention", "mx32"}));
  EXPECT_TRUE(throws<ValueError>(
      refused("{softmax: natural, pv: {format: e4m3, scaling: tensor_current, pow2: true}}"),
      {"pv", "pow2", "format and scaling alone", "line 2"}));
  EXPECT_TRUE(throws<ValueError>(refused("{qk: {format: e4m3, scaling: mx32, rht: true}}"),
                                 {"operand has rht", "linear layers only", "line 2"}));
  EXPECT_TRUE(throws<ValueError>(refused("{do: {format: e2m1, scaling: mx32, stochastic: true}}"),
                                 {"gradient has stochastic", "linear layers only", "line 2"}));
}

}  // namespace
}  // namespace kitchen
