#include "kitchen/recipes/predefined.h"

#include "kitchen/base/error.h"
#include "kitchen/base/rank_state.h"
#include "support/expect_error.h"

#include <gtest/gtest.h>

#include <cctype>
#include <string>
#include <typeinfo>
#include <vector>

namespace kitchen {
namespace {

using testing::throws;

/// One row of the table of numerics.md S6, written down by hand.
struct LinearRow {
  const char* name;
  std::int64_t number;  // 0: none
  const char* evidence;
  const char* x;
  const char* w;
  const char* dy;
  const char* fprop;
  const char* dgrad;
  const char* wgrad;
};

constexpr const char* kFast = "quantized fast auto";
constexpr const char* kPromoted = "quantized promoted auto";
constexpr const char* kNative = "quantized fp32 auto";
constexpr const char* kEmulated = "quantized fp32 emulation";
constexpr const char* kNone = "unquantized";

const std::vector<LinearRow> kLinearRows = {
    {"bf16", 1, "public", "bf16", "bf16", "bf16", kNone, kNone, kNone},
    {"fp8_cs", 2, "public", "e4m3 tensor_current", "e4m3 tensor_current", "e5m2 tensor_current",
     kFast, kPromoted, kPromoted},
    {"fp8_cs_pow2", 0, "ours", "e4m3 tensor_current pow2", "e4m3 tensor_current pow2",
     "e5m2 tensor_current pow2", kFast, kPromoted, kPromoted},
    {"fp8_cs_e4m3", 0, "ours", "e4m3 tensor_current", "e4m3 tensor_current", "e4m3 tensor_current",
     kFast, kPromoted, kPromoted},
    {"fp8_cs_e4m3_pow2", 0, "ours", "e4m3 tensor_current pow2", "e4m3 tensor_current pow2",
     "e4m3 tensor_current pow2", kFast, kPromoted, kPromoted},
    {"fp8_rowwise", 0, "ours", "e4m3 row", "e4m3 row", "e5m2 row", kFast, kPromoted, kPromoted},
    {"fp8_block", 0, "ours", "e4m3 block1x128 pow2", "e4m3 block128x128 pow2",
     "e4m3 block1x128 pow2", kPromoted, kPromoted, kPromoted},
    {"fp8_block_fp32", 0, "ours", "e4m3 block1x128", "e4m3 block128x128", "e4m3 block1x128",
     kPromoted, kPromoted, kPromoted},
    {"fp8_block_1d", 0, "ours", "e4m3 block1x128 pow2", "e4m3 block1x128 pow2",
     "e4m3 block1x128 pow2", kPromoted, kPromoted, kPromoted},
    {"fp8_block_hybrid", 0, "ours", "e4m3 block1x128 pow2", "e4m3 block128x128 pow2",
     "e5m2 block1x128 pow2", kPromoted, kPromoted, kPromoted},
    {"mxfp8", 0, "ours", "e4m3 mx32", "e4m3 mx32", "e4m3 mx32", kNative, kNative, kNative},
    {"mxfp8_emulation", 6001, "inferred", "e4m3 mx32", "e4m3 mx32", "e4m3 mx32", kEmulated,
     kEmulated, kEmulated},
    {"nvfp4", 6010, "public", "e2m1 nvfp4_1d", "e2m1 nvfp4_1d", "e2m1 nvfp4_1d", kEmulated,
     kEmulated, kEmulated},
    {"mxfp8_hybrid", 0, "ours", "e4m3 mx32", "e4m3 mx32", "e5m2 mx32", kNative, kNative, kNative},
    {"mxfp4", 0, "ours", "e2m1 mx32", "e2m1 mx32", "e2m1 mx32", kEmulated, kEmulated, kEmulated},
    {"nvfp4_2d", 9002, "public", "e2m1 nvfp4_1d", "e2m1 nvfp4_2d", "e2m1 nvfp4_1d", kEmulated,
     kEmulated, kEmulated},
    {"nvfp4_rht_2d", 9003, "public", "e2m1 nvfp4_1d rht", "e2m1 nvfp4_2d", "e2m1 nvfp4_1d rht",
     kEmulated, kEmulated, kEmulated},
    {"nvfp4_rht_2d_sr", 0, "ours", "e2m1 nvfp4_1d rht", "e2m1 nvfp4_2d",
     "e2m1 nvfp4_1d rht stochastic", kEmulated, kEmulated, kEmulated},
    {"nvfp4_rht", 960109, "public", "e2m1 nvfp4_1d rht", "e2m1 nvfp4_1d", "e2m1 nvfp4_1d rht",
     kEmulated, kEmulated, kEmulated},
    {"fp8_cs_bf16_wgrad", 0, "ours", "e4m3 tensor_current", "e4m3 tensor_current",
     "e5m2 tensor_current", kFast, kPromoted, kNone},
    {"fp8_block_deepgemm", 0, "ours", "e4m3 block1x128 convention=deepgemm",
     "e4m3 block128x128 convention=deepgemm", "e4m3 block1x128 convention=deepgemm", kPromoted,
     kPromoted, kPromoted},
    {"fp8_delayed", 0, "ours", "e4m3 tensor_delayed window=1024 margin=0 algorithm=max",
     "e4m3 tensor_delayed window=1024 margin=0 algorithm=max",
     "e5m2 tensor_delayed window=1024 margin=0 algorithm=max", kFast, kPromoted, kPromoted},
    {"int8_row", 0, "ours", "int8 row", "int8 row", "bf16", kNative, kNone, kNone},
};

// labels: QLinearParams recipes.linear_table
TEST(LinearRecipes, TableHoldsEveryRow) {
  EXPECT_EQ(predefined_linear_recipes().size(), kLinearRows.size());
  for (const LinearRow& row : kLinearRows) {
    SCOPED_TRACE(row.name);
    const auto params = get_qlinear_params_from_recipe_name(row.name);
    EXPECT_EQ(params->number.value_or(0), row.number);
    EXPECT_EQ(to_string(params->evidence), row.evidence);
    EXPECT_EQ(params->x_params.repr(), row.x);
    EXPECT_EQ(params->w_params.repr(), row.w);
    EXPECT_EQ(params->g_params.repr(), row.dy);
    EXPECT_EQ(params->mm_fprop.repr(), row.fprop);
    EXPECT_EQ(params->mm_dgrad.repr(), row.dgrad);
    EXPECT_EQ(params->mm_wgrad.repr(), row.wgrad);
    EXPECT_EQ(params->autograd_function_implementation,
              row.number == 1 ? AutogradFunctionImplementation::HIGH_PRECISION
                              : AutogradFunctionImplementation::QUANTIZED);
    if (row.number > 0) {
      EXPECT_EQ(get_qlinear_params_from_qat_params(row.number), params);
    }
  }
}

// labels: QLinearParams to_kitchen_qlinear
TEST(LinearRecipes, NumberNameAndPredefinedGiveTheSameObject) {
  const auto by_number = get_qlinear_params_from_qat_params(2);
  EXPECT_EQ(by_number, get_qlinear_params_from_qat_params(2));
  EXPECT_EQ(by_number, get_qlinear_params_from_recipe_name("fp8_cs"));
  EXPECT_EQ(by_number, get_qlinear_params_from_predefined(QuantizeRecipe::FP8_CS));
  for (const auto& params : predefined_linear_recipes()) {
    std::string upper = params->name;
    for (char& c : upper) c = static_cast<char>(std::toupper(c));
    EXPECT_EQ(get_qlinear_params_from_predefined(from_string<QuantizeRecipe>(upper)), params);
  }
  for (const auto& params : predefined_attention_recipes()) {
    std::string upper = params->name;
    for (char& c : upper) c = static_cast<char>(std::toupper(c));
    EXPECT_EQ(get_qattention_params_from_predefined(from_string<QuantizeRecipeAttnBMM>(upper)),
              params);
  }
}

// labels: C16 get_qlinear_params_from_qat_params
TEST(LinearRecipes, UnknownNumbersListWhatIsKnown) {
  EXPECT_TRUE(throws<ValueError>(
      [] { (void)get_qlinear_params_from_qat_params(9999); },
      {"9999", "1 (bf16), 2 (fp8_cs), 6001 (mxfp8_emulation)", "960109", "fp8_block"}));
  for (const std::int64_t bad : {std::int64_t{0}, std::int64_t{-1}}) {
    EXPECT_TRUE(throws<ValueError>([&] { (void)get_qlinear_params_from_qat_params(bad); },
                                   {"positive integer", std::to_string(bad), "1 (bf16)"}));
    EXPECT_TRUE(throws<ValueError>([&] { (void)get_qattention_params_from_qat_params(bad); },
                                   {"positive integer", std::to_string(bad)}));
  }
  EXPECT_TRUE(throws<ValueError>([] { (void)get_qlinear_params_from_recipe_name("fp8_blok"); },
                                 {"\"fp8_blok\"", "nearest: fp8_block"}));
  EXPECT_TRUE(throws<ValueError>([] { (void)get_qlinear_params_from_recipe_name(""); },
                                 {"nearest: none", "fp8_cs"}));
}

// labels: QAttentionParams get_qattention_params_from_qat_params
TEST(AttentionRecipes, NumbersMeanTheirOwnTable) {
  const auto bf16 = get_qattention_params_from_qat_params(1);
  EXPECT_EQ(typeid(bf16->get_quantizer(false)), typeid(UnquantizedBmm));
  EXPECT_EQ(typeid(bf16->get_quantizer(true)), typeid(UnquantizedBmm));
  EXPECT_FALSE(bf16->get_quantizer(true).quantized());
  const auto mx = get_qattention_params_from_qat_params(6001);
  EXPECT_EQ(typeid(*mx->quantizer_bmm1), typeid(MxBmmQuantizer));
  EXPECT_EQ(mx->get_quantizer(false).operand().repr(), "e4m3 mx32");
  EXPECT_EQ(mx->get_quantizer(true).gradient().repr(), "e4m3 mx32");
  EXPECT_EQ(mx->evidence, Evidence::public_source);
  EXPECT_EQ(mx, get_qattention_params_from_predefined(QuantizeRecipeAttnBMM::MXFP8_EMULATION));
  EXPECT_TRUE(throws<ValueError>([] { (void)get_qattention_params_from_qat_params(2); },
                                 {"2", "1 (bf16), 6001 (mxfp8_emulation)", "fp8_cs"}));
  const auto tensor = get_qattention_params_from_recipe_name("fp8_cs");
  EXPECT_EQ(typeid(tensor->get_quantizer(true)), typeid(TensorBmmQuantizer));
  EXPECT_EQ(tensor->get_quantizer(true).gradient().format, "e5m2");
  EXPECT_FALSE(tensor->number);
  EXPECT_NE(*tensor, *mx);
}

// labels: QAttentionParams
TEST(AttentionRecipes, QuantizersRefuseScalingsOfAnotherScheme) {
  QuantizerParams mx;
  mx.format = "e4m3";
  mx.scaling = Scaling::mx32;
  EXPECT_TRUE(throws<ValueError>([&] { (void)TensorBmmQuantizer(mx, {}, {}); },
                                 {"tensor", "operand", "mx32"}));
  EXPECT_EQ(MxBmmQuantizer(mx, {}, {}).operand(), mx);
  mx.format = "e3m4";
  EXPECT_TRUE(throws<ValueError>([&] { (void)MxBmmQuantizer(mx, {}, {}); }, {"\"e3m4\""}));
}

// labels: QFlashAttentionParams C16 get_qfa_params_from_recipe_name
TEST(FlashRecipes, PublicNamesHaveTheirDocumentedFields) {
  const auto base2 = get_qfa_params_from_recipe_name("triton_fa_bf16_for_all_base_2");
  EXPECT_EQ(base2->backend, "triton");
  EXPECT_EQ(base2->qk_dot_precisions, "bf16@bf16");
  EXPECT_EQ(base2->pv_dot_precisions, "bf16@bf16");
  EXPECT_FALSE(base2->use_natural_transcendental_func);
  const auto natural = get_qfa_params_from_recipe_name("triton_fa_bf16_for_all_natural");
  EXPECT_TRUE(natural->use_natural_transcendental_func);
  EXPECT_EQ(natural->backend, "triton");
  EXPECT_NE(*natural, *base2);
  EXPECT_EQ(base2, get_qfa_params_from_recipe_name("triton_fa_bf16_for_all_base_2"));
  const auto fp8 = get_qfa_params_from_recipe_name("fa_fp8_e4m3_base_2");
  EXPECT_EQ(fp8->dv_dot_precisions, "e4m3@e5m2");
  EXPECT_EQ(fp8->p_scale, 256.0);
  EXPECT_TRUE(throws<ValueError>(
      [] { (void)get_qfa_params_from_recipe_name("triton_fa_bf16_for_all_naturel"); },
      {"triton_fa_bf16_for_all_naturel", "nearest: triton_fa_bf16_for_all_natural",
       "triton_fa_bf16_for_all_base_2"}));
}

QLinearParams mine() {
  QLinearParams params = *get_qlinear_params_from_recipe_name("fp8_cs");
  params.name = "mine";
  params.number.reset();
  return params;
}

// labels: QLinearParams recipes.validation
TEST(QLinearParams, EqualityComparesWhatIsComputedAndNotTheLabels) {
  const QLinearParams fp8 = *get_qlinear_params_from_recipe_name("fp8_cs");
  EXPECT_EQ(mine(), fp8);
  const std::vector<void (*)(QLinearParams&)> changes = {
      [](QLinearParams& p) { p.x_params.pow2 = true; },
      [](QLinearParams& p) { p.w_params.eps = 1e-12; },
      [](QLinearParams& p) { p.g_params.format = "e4m3"; },
      [](QLinearParams& p) { p.mm_fprop.accumulate = Accumulate::fp32; },
      [](QLinearParams& p) { p.mm_dgrad.backend = MatmulBackend::reference; },
      [](QLinearParams& p) { p.mm_wgrad.quantized = false; },
      [](QLinearParams& p) {
        p.autograd_function_implementation = AutogradFunctionImplementation::HIGH_PRECISION;
      }};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    QLinearParams other = fp8;
    changes[i](other);
    EXPECT_NE(other, fp8) << "change " << i;
  }
}

// labels: QLinearParams recipes.validation
TEST(QLinearParams, MeaninglessDescriptionsAreRefused) {
  const auto refused = [](void (*change)(QLinearParams&), const std::vector<std::string>& phrases) {
    QLinearParams params = mine();
    change(params);
    return throws<ValueError>([&] { validate_q_linear_params(params); }, phrases);
  };
  EXPECT_TRUE(refused([](QLinearParams& p) { p.x_params.format = "e4m4"; },
                      {"mine: x", "\"e4m4\"", "bf16, e4m3"}));
  EXPECT_TRUE(refused([](QLinearParams& p) { p.x_params.format = "e2m1"; },
                      {"e2m1", "tensor_current", "e4m3, e5m2"}));
  EXPECT_TRUE(refused([](QLinearParams& p) { p.w_params = {}; }, {"fprop", "operand w", "none"}));
  EXPECT_TRUE(refused(
      [](QLinearParams& p) { p.x_params.scaling = p.w_params.scaling = Scaling::block128x128; },
      {"fprop", "square blocks", "x (block128x128)"}));
  EXPECT_TRUE(refused([](QLinearParams& p) { p.g_params.rht = true; }, {"rht", "x", "dy"}));
  EXPECT_TRUE(refused([](QLinearParams& p) { p.x_params.eps = -1; }, {"eps is -1"}));
  EXPECT_TRUE(refused([](QLinearParams& p) { p.g_params.stochastic = true; }, {"e2m1", "e5m2"}));
  EXPECT_TRUE(refused([](QLinearParams& p) { p.x_params.convention = BlockConvention::deepgemm; },
                      {"deepgemm", "tensor_current"}));
  EXPECT_TRUE(refused([](QLinearParams& p) { p.w_params.rht = true; },
                      {"mine: rht of w", "x and dy only"}));
  QLinearParams fp4 = *get_qlinear_params_from_recipe_name("nvfp4");
  fp4.x_params.stochastic = true;
  EXPECT_TRUE(
      throws<ValueError>([&] { validate_q_linear_params(fp4); }, {"stochastic", "only dy"}));
  fp4 = *get_qlinear_params_from_recipe_name("nvfp4_2d");
  for (QuantizerParams* other : {&fp4.x_params, &fp4.g_params}) {
    const QuantizerParams line = *other;
    *other = fp4.w_params;
    EXPECT_TRUE(throws<ValueError>([&] { validate_q_linear_params(fp4); },
                                   {"square blocks", "w (nvfp4_2d)"}));
    *other = line;
  }
}

// labels: register_recipe
TEST(RegisterRecipe, AddsANameForThisRankAndNeverReplacesOne) {
  const RankScope own_rank(std::make_shared<RankState>());
  QLinearParams params = mine();
  params.number = 1000000000;
  register_recipe(params);
  EXPECT_EQ(get_qlinear_params_from_recipe_name("mine"),
            get_qlinear_params_from_qat_params(1000000000));
  EXPECT_TRUE(throws<ValueError>([&] { register_recipe(params); }, {"mine", "taken"}));
  params.name = "other";
  params.number = 7;
  EXPECT_TRUE(throws<ValueError>([&] { register_recipe(params); }, {"7", "1000000000 or more"}));
  params.name = "";
  EXPECT_TRUE(throws<ValueError>([&] { register_recipe(params); }, {"no name"}));
  const RankScope another_rank(std::make_shared<RankState>());
  EXPECT_THROW((void)get_qlinear_params_from_recipe_name("mine"), ValueError);
}

}  // namespace
}  // namespace kitchen
