#include "kitchen/autograd/backward.h"
#include "kitchen/autograd/math_functions.h"
#include "kitchen/base/error.h"
#include "kitchen/extension/kitchen_linear.h"
#include "kitchen/modules/quantized_operand.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/ops/quantize.h"
#include "kitchen/recipes/quantize_spec_of.h"
#include "support/compare.h"
#include "support/exact_product.h"
#include "support/expect_error.h"
#include "support/kitchen_layers.h"
#include "support/rank_test.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace kitchen {
namespace {

using testing::close;
using testing::exact_product;
using testing::ExactProduct;
using testing::linear_args;
using testing::throws;
using testing::transposed;
using testing::values_of;

using Entries = std::vector<std::string>;

Entries sorted(Entries entries) {
  std::sort(entries.begin(), entries.end());
  return entries;
}

/// A matrix as a product sees it: rows by reduction.
struct Seen {
  std::vector<double> values;
  std::int64_t rows;
  std::int64_t reduction;
};

/// What a quantized product sees of `x`: its dequantized codes, or x itself.
Seen seen(const Tensor& x, const QuantizerParams& params, const MatmulParams& matmul,
          bool columnwise) {
  const Tensor matrix = columnwise ? x.transpose(0, 1) : x;
  if (!matmul.quantized) return {values_of(matrix), matrix.dim(0), matrix.dim(1)};
  const QuantizedMatrix codes = ops::quantize(matrix, quantize_spec_of(params, columnwise));
  const Tensor values = ops::dequantize(codes, DType::float32);
  return {values_of(values), values.dim(0), values.dim(1)};
}

ExactProduct product(const Seen& a, const Seen& b) {
  return exact_product(a.values, b.values, a.rows, b.rows, a.reduction);
}

class LinearProducts : public testing::RankTest {
 protected:
  [[nodiscard]] std::shared_ptr<KitchenLinear> layer_of(
      const TransformerConfig& config, const QuantizationConfig& recipe, std::int64_t in,
      std::int64_t out, bool bias = true) const {
    LinearArgs args = linear_args(make_config(config));
    args.bias = bias;
    auto layer = std::make_shared<KitchenLinear>(in, out, args);
    layer->finish_init(recipe);
    if (bias) layer->bias.set_data(tensor({out}, 50, config.params_dtype));
    return layer;
  }

  /// fp32 accumulation errs by (k + 4)·2^-24·Σ|a||b| at most (ops/gemm.h, and a rounding for each of scale and
  /// bias); a bf16 result by 2^-8 of itself besides.
  static void expect_product(const ExactProduct& expected, const Tensor& got, std::int64_t k,
                             double added = 0.0) {
    const double atol = static_cast<double>(k + 8) * 0x1p-24 * (expected.largest_sum + added);
    EXPECT_TRUE(close(expected.values, values_of(got), atol, testing::unit_roundoff(got.dtype())));
  }

  /// Forward and both gradients against the three products on dequantized operands, by hand.
  void check(const TransformerConfig& config, const QuantizationConfig& recipe, std::int64_t tokens,
             std::int64_t in, std::int64_t out) const {
    SCOPED_TRACE(recipe.repr() + " " + to_string(Shape{tokens, in, out}));
    const auto layer = layer_of(config, recipe, in, out);
    const DType dtype = config.params_dtype;
    const QLinearParams& p = *layer->kitchen_quant_params->qlinear_params;
    const Tensor x = leaf({tokens, in}, 1, dtype);
    const Tensor dy = tensor({tokens, out}, 2, dtype);
    const Tensor w = layer->weight.detach();
    const Tensor y = layer->forward(x).first;
    autograd::backward(y, dy);
    const Tensor plain = x.detach();

    ExactProduct fprop = product(seen(plain, p.x_params, p.mm_fprop, false),
                                 seen(w, p.w_params, p.mm_fprop, false));
    const std::vector<double> b = values_of(layer->bias.detach());
    for (std::size_t i = 0; i < fprop.values.size(); ++i) fprop.values[i] += b[i % b.size()];
    EXPECT_EQ(y.dtype(), dtype);
    expect_product(fprop, y.detach(), in, 0.5);
    expect_product(product(seen(dy, p.g_params, p.mm_dgrad, false),
                           seen(w, p.w_params, p.mm_dgrad, true)),
                   autograd::grad_of(x), out);
    expect_product(product(seen(dy, p.g_params, p.mm_wgrad, true),
                           seen(plain, p.x_params, p.mm_wgrad, true)),
                   layer->weight.grad(), tokens);
    // The bias gradient is the sum of the unquantized dy.
    EXPECT_TRUE(close(testing::column_sums(values_of(dy), out), values_of(layer->bias.grad()),
                      static_cast<double>(tokens) * 0x1p-24 * static_cast<double>(tokens),
                      testing::unit_roundoff(dtype)));
  }
};

// labels: KitchenLinear.forward recipe_1
TEST_F(LinearProducts, RecipeOneIsThePlainProduct) {
  for (const TransformerConfig& config : {testing::small_transformer(), testing::bf16_transformer()}) {
    for (const std::int64_t tokens : {1, 7, 33}) check(config, testing::linear_recipe(1), tokens, 40, 24);
    check(config, testing::linear_recipe(1), 5, 1, 1);
  }
}

// labels: KitchenLinear.forward recipe_2 recipe_6001 QLinearRecipe
TEST_F(LinearProducts, QuantizedProductsEqualThoseOfDequantizedOperands) {
  for (const TransformerConfig& config : {testing::small_transformer(), testing::bf16_transformer()}) {
    for (const std::int64_t tokens : {1, 7, 33, 64}) {
      check(config, testing::linear_recipe(2), tokens, 40, 24);
      check(config, testing::linear_recipe(6001), tokens, 40, 24);
      check(config, testing::named_linear_recipe("mxfp8"), tokens, 64, 31);
    }
    for (const char* name : {"fp8_block", "fp8_rowwise", "fp8_cs_bf16_wgrad", "nvfp4", "nvfp4_rht_2d"}) {
      check(config, testing::named_linear_recipe(name), 19, 40, 24);
    }
  }
}

// labels: KitchenLinear.forward G01 G03 G05 G27
TEST_F(LinearProducts, SizesOffTheAlignmentOfTheUnitsAreComputed) {
  const TransformerConfig config = testing::bf16_transformer();
  for (const QuantizationConfig& recipe :
       {testing::linear_recipe(2), testing::linear_recipe(6001)}) {
    check(config, recipe, 32, 767, 48);   // K is no multiple of 16
    check(config, recipe, 16, 712, 56);   // nor of 32
    check(config, recipe, 65, 320, 16);   // the last block of tokens has one row
    check(config, recipe, 24, 64, 64);    // tokens a multiple of 8 only
  }
}

// labels: KitchenLinear.forward G13
TEST_F(LinearProducts, AnInputOfAnyStridesGivesTheNumbersOfItsCopy) {
  const auto layer = layer_of(testing::small_transformer(), testing::linear_recipe(2), 4, 6);
  const Tensor x = tensor({4, 4, 4, 4}, 1).permute({2, 3, 1, 0});
  const Tensor copy = Tensor::empty(context, {4, 4, 4, 4}, DType::float32);
  ops::copy_into(x, copy);
  const autograd::NoGradGuard guard;
  EXPECT_TRUE(testing::same_bits(layer->forward(copy).first, layer->forward(x).first));
}

// labels: KitchenLinear.forward set_is_first_microbatch OperandCallLog
TEST_F(LinearProducts, TheWeightIsQuantizedOnceForEachFirstMicroBatch) {
  const auto layer = layer_of(testing::small_transformer(), testing::linear_recipe(2), 5, 6);
  modules::OperandCallLog log;
  const modules::OperandObserverScope scope(&log);
  const auto step = [&] {
    log.clear();
    const Tensor y = layer->forward(leaf({3, 5}, 1)).first;
    const Entries forward = sorted(log.entries());
    log.clear();
    autograd::backward(y, tensor({3, 6}, 2));
    EXPECT_EQ(sorted(log.entries()), (Entries{"g/dgrad", "g/wgrad"}));
    return forward;
  };
  for (int i = 0; i < 2; ++i) {
    layer->is_first_microbatch = true;
    EXPECT_EQ(step(), (Entries{"w/dgrad", "w/fprop", "x/fprop", "x/wgrad"}));
    EXPECT_FALSE(layer->is_first_microbatch);
    EXPECT_EQ(step(), (Entries{"x/fprop", "x/wgrad"}));
    EXPECT_EQ(step(), (Entries{"x/fprop", "x/wgrad"}));
  }
  EXPECT_EQ(log.infos()[0].module, "layer");
}

// labels: KitchenLinear.forward set_is_first_microbatch
TEST_F(LinearProducts, AnEvaluationBeforeTheFirstMicroBatchKeepsTheCacheRight) {
  const auto layer = layer_of(testing::small_transformer(), testing::linear_recipe(2), 5, 6);
  modules::OperandCallLog log;
  const modules::OperandObserverScope scope(&log);
  {
    const autograd::NoGradGuard guard;
    (void)layer->forward(tensor({3, 5}, 1));
  }
  EXPECT_EQ(log.entries(), (Entries{"x/fprop", "w/fprop"}));
  log.clear();
  (void)layer->forward(leaf({3, 5}, 1));
  EXPECT_EQ(sorted(log.entries()), (Entries{"w/dgrad", "x/fprop", "x/wgrad"}));
}

// labels: KitchenLinear.forward disable_parameter_transpose_cache
TEST_F(LinearProducts, WithoutTheCacheTheWeightIsQuantizedAtEachUse) {
  TransformerConfig config = testing::small_transformer();
  config.disable_parameter_transpose_cache = true;
  const auto layer = layer_of(config, testing::linear_recipe(2), 5, 6);
  EXPECT_TRUE(layer->disable_parameter_transpose_cache);
  modules::OperandCallLog log;
  const modules::OperandObserverScope scope(&log);
  for (int i = 0; i < 2; ++i) {
    log.clear();
    const Tensor y = layer->forward(leaf({3, 5}, 1)).first;
    EXPECT_EQ(sorted(log.entries()), (Entries{"w/fprop", "x/fprop", "x/wgrad"}));
    EXPECT_FALSE(layer->is_first_microbatch);
    log.clear();
    autograd::backward(y, tensor({3, 6}, 2));
    EXPECT_EQ(sorted(log.entries()), (Entries{"g/dgrad", "g/wgrad", "w/dgrad"}));
    layer->weight.bump_version();  // nothing is kept, so nothing is stale
  }
}

// labels: KitchenLinear.forward OperandCallLog
TEST_F(LinearProducts, ProductsThatNobodyWantsAreSkipped) {
  const auto layer = layer_of(testing::small_transformer(), testing::linear_recipe(2), 5, 6, false);
  modules::OperandCallLog log;
  const modules::OperandObserverScope scope(&log);
  autograd::backward(layer->forward(tensor({3, 5}, 1)).first, tensor({3, 6}, 2));
  EXPECT_EQ(sorted(log.entries()), (Entries{"g/wgrad", "w/fprop", "x/fprop", "x/wgrad"}));
  log.clear();
  layer->is_first_microbatch = true;
  autograd::set_requires_grad(layer->weight, false);
  autograd::backward(layer->forward(leaf({3, 5}, 1)).first, tensor({3, 6}, 2));
  EXPECT_EQ(sorted(log.entries()), (Entries{"g/dgrad", "w/dgrad", "w/fprop", "x/fprop"}));
}

// labels: KitchenLinear.forward recipe_1 OperandCallLog
TEST_F(LinearProducts, RecipeOneQuantizesNothing) {
  const auto layer = layer_of(testing::small_transformer(), testing::linear_recipe(1), 5, 6);
  modules::OperandCallLog log;
  const modules::OperandObserverScope scope(&log);
  autograd::backward(layer->forward(leaf({3, 5}, 1)).first, tensor({3, 6}, 2));
  EXPECT_TRUE(log.entries().empty());
}

// labels: KitchenLinear.forward describe_tape
TEST_F(LinearProducts, AQuantizedLayerKeepsOnlyCodesOfItsInput) {
  const auto bytes_of = [&](std::int64_t recipe) {
    const auto layer = layer_of(testing::small_transformer(), testing::linear_recipe(recipe), 64, 32);
    const Tensor x = tensor({128, 64}, 1);
    return autograd::describe_tape(layer->forward(x).first)[0].saved_bytes;
  };
  const std::int64_t weight = 32 * 64 * 4;
  EXPECT_EQ(bytes_of(1), 128 * 64 * 4 + weight);
  // One byte an element, one scale and one amax; the weight of the optimizer is counted too.
  EXPECT_EQ(bytes_of(2), 128 * 64 + 4 + 4 + weight);
}

// labels: KitchenLinear.forward gradient_accumulation_fusion T09
TEST_F(LinearProducts, FusionWithoutMainGradNamesTheParameter) {
  TransformerConfig config = testing::small_transformer();
  config.gradient_accumulation_fusion = true;
  const auto layer = layer_of(config, testing::linear_recipe(2, "decoder.fc1"), 5, 6);
  const Tensor y = layer->forward(tensor({3, 5}, 1)).first;
  EXPECT_TRUE(throws<AssertionError>([&] { autograd::backward(y, tensor({3, 6}, 2)); },
                                     {"decoder.fc1.weight", "main_grad", "allocate"}));
}

// labels: KitchenLinear.forward gradient_accumulation_fusion T11
TEST_F(LinearProducts, FourEqualMicroBatchesGiveFourTimesTheGradient) {
  for (const std::int64_t recipe : {1, 2}) {
    for (const DType main_dtype : {DType::float32, DType::bfloat16}) {
      const auto single = layer_of(testing::bf16_transformer(), testing::linear_recipe(recipe), 5, 6);
      const Tensor x = tensor({3, 5}, 1, DType::bfloat16);
      const Tensor dy = tensor({3, 6}, 2, DType::bfloat16);
      autograd::backward(single->forward(x).first, dy);
      TransformerConfig config = testing::bf16_transformer();
      config.gradient_accumulation_fusion = true;
      const auto fused = layer_of(config, testing::linear_recipe(recipe), 5, 6);
      fused->weight.set_main_grad(Tensor::zeros(context, {6, 5}, main_dtype));
      for (int i = 0; i < 4; ++i) autograd::backward(fused->forward(x).first, dy);
      EXPECT_TRUE(fused->weight.grad_added_to_main_grad());
      EXPECT_FALSE(fused->weight.grad().defined());
      std::vector<double> expected = values_of(single->weight.grad());
      for (double& value : expected) value *= 4.0;
      // The single gradient has one bf16 rounding; bf16 sums have four more, each of at most 2^-8 of 4 g.
      const double rtol = main_dtype == DType::float32 ? 0x1p-8 : 5 * 0x1p-8;
      EXPECT_TRUE(close(expected, values_of(fused->weight.main_grad()), 1e-6, rtol));
    }
  }
}

// labels: KitchenLinear.forward
TEST_F(LinearProducts, ASkippedBiasTakesPartInAutograd) {
  LinearArgs args = linear_args(make_config(testing::small_transformer()));
  args.skip_bias_add = true;
  KitchenLinear layer(5, 6, args);
  layer.finish_init(testing::linear_recipe(2));
  const auto [y, bias] = layer.forward(tensor({3, 5}, 1));
  autograd::backward(autograd::add_bias(y, *bias), tensor({3, 6}, 2));
  EXPECT_TRUE(close(testing::column_sums(values_of(tensor({3, 6}, 2)), 6), values_of(layer.bias.grad()),
                    1e-6, 0.0));
}

}  // namespace
}  // namespace kitchen
