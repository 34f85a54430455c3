#include "kitchen/autograd/backward.h"
#include "kitchen/base/error.h"
#include "kitchen/extension/kitchen_grouped_linear.h"
#include "kitchen/extension/kitchen_linear.h"
#include "kitchen/modules/quantized_operand.h"
#include "kitchen/ops/elementwise.h"
#include "support/compare.h"
#include "support/exact_product.h"
#include "support/expect_error.h"
#include "support/kitchen_layers.h"
#include "support/rank_test.h"
#include "support/ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <functional>

namespace kitchen {
namespace {

using testing::close;
using testing::exact_product;
using testing::ExactProduct;
using testing::grouped_args;
using testing::linear_recipe;
using testing::named_linear_recipe;
using testing::same_bits;
using testing::throws;
using testing::values_of;

using Splits = std::vector<std::int64_t>;

/// A recipe for a layer at a path.
using Recipe = std::function<QuantizationConfig(const std::string& path)>;

Recipe numbered(std::int64_t number) {
  return [number](const std::string& path) { return linear_recipe(number, path); };
}
Recipe named(const std::string& name) {
  return [name](const std::string& path) { return named_linear_recipe(name, path); };
}

/// A grouped layer, and a KitchenLinear for each of its experts, which starts with equal weights.
struct Twins {
  std::shared_ptr<KitchenGroupedLinear> grouped;
  std::vector<std::shared_ptr<KitchenLinear>> single;
};

class GroupedProducts : public testing::RankTest {
 protected:
  std::shared_ptr<TransformerConfig> config = make_config(testing::small_transformer());

  [[nodiscard]] Twins twins(std::int64_t experts, std::int64_t in, std::int64_t out,
                            const Recipe& recipe) const {
    Twins made{std::make_shared<KitchenGroupedLinear>(experts, in, out, grouped_args(config)), {}};
    made.grouped->finish_init(recipe("mlp.experts.linear_fc1"));
    for (std::int64_t i = 0; i < experts; ++i) {
      LinearArgs a = testing::linear_args(config, "column");
      a.is_expert = true;
      a.tp_group = ProcessGroup::self();
      made.single.push_back(std::make_shared<KitchenLinear>(in, out, a));
      made.single.back()->finish_init(
          recipe("mlp.experts.local_experts." + std::to_string(i) + ".linear_fc1"));
      const Tensor bias = tensor({out}, static_cast<std::uint64_t>(70 + i));
      ops::copy_into(bias, made.grouped->bias(i).detach());
      ops::copy_into(bias, made.single.back()->bias.detach());
    }
    return made;
  }

  /// One step of both: outputs, all gradients and what the quantizers remember have equal bits.
  void expect_equal_step(const Twins& both, const Splits& splits, std::uint64_t seed) const {
    std::int64_t rows = 0;
    for (const std::int64_t split : splits) rows += split;
    const std::int64_t in = both.grouped->in_features;
    const std::int64_t out = both.grouped->out_features;
    const Tensor x = leaf({rows, in}, seed, config->params_dtype);
    const Tensor g = tensor({rows, out}, seed + 1, config->params_dtype);
    const Tensor y = both.grouped->forward(x, splits).first;
    autograd::backward(y, g);
    std::int64_t start = 0;
    for (std::size_t i = 0; i < splits.size(); ++i) {
      const auto local = static_cast<std::int64_t>(i);
      KitchenLinear& single = *both.single[i];
      const Tensor part = ops::contiguous(x.detach().slice(0, start, splits[i]));
      autograd::set_requires_grad(part);
      const Tensor expected = single.forward(part).first;
      autograd::backward(expected, ops::contiguous(g.slice(0, start, splits[i])));
      EXPECT_TRUE(same_bits(expected.detach(), y.detach().slice(0, start, splits[i]))) << i;
      EXPECT_TRUE(
          same_bits(autograd::grad_of(part), autograd::grad_of(x).slice(0, start, splits[i])))
          << i;
      EXPECT_TRUE(same_bits(single.weight.grad(), both.grouped->weight(local).grad())) << i;
      EXPECT_TRUE(same_bits(single.bias.grad(), both.grouped->bias(local).grad())) << i;
      start += splits[i];
    }
    finish_step(both);
  }

  void finish_step(const Twins& both) const {
    const std::vector<Tensor> states =
        both.grouped->_split_extra_state(both.grouped->get_extra_state());
    for (std::size_t i = 0; i < both.single.size(); ++i) {
      EXPECT_TRUE(same_bits(both.single[i]->get_extra_state(), states[i])) << i;
      both.single[i]->is_first_microbatch = true;
      modules::finish_quantization_step(*both.single[i]);
    }
    both.grouped->is_first_microbatch = true;
    modules::finish_quantization_step(*both.grouped);
  }
};

// labels: KitchenGroupedLinear.forward G17 D31 stochastic_rounding delayed_scaling
TEST_F(GroupedProducts, EqualOneLinearForEachExpertToTheBit) {
  const std::vector<std::pair<std::string, Recipe>> recipes = {
      {"1", numbered(1)},
      {"2", numbered(2)},
      {"6001", numbered(6001)},
      {"mxfp8", named("mxfp8")},
      {"fp8_delayed", named("fp8_delayed")},
      {"nvfp4_rht_2d_sr", named("nvfp4_rht_2d_sr")}};
  for (const bool bf16 : {false, true}) {
    config = make_config(bf16 ? testing::bf16_transformer() : testing::small_transformer());
    for (const auto& [name, recipe] : recipes) {
      SCOPED_TRACE(name + (bf16 ? " bf16" : " fp32"));
      const Twins both = twins(4, 32, 64, recipe);
      std::uint64_t seed = 1;
      for (const Splits& splits :
           std::vector<Splits>{{5, 0, 3, 0}, {1, 1, 1, 1}, {0, 33, 7, 2}, {0, 0, 0, 0}}) {
        expect_equal_step(both, splits, seed += 10);
      }
    }
  }
}

// labels: KitchenGroupedLinear.forward G17
TEST_F(GroupedProducts, AnExpertWithoutRowsHasZeroGradients) {
  for (const Recipe& recipe : {numbered(1), numbered(2)}) {
    const Twins both = twins(4, 32, 64, recipe);
    const Tensor x = leaf({8, 32}, 1);
    const Tensor y = both.grouped->forward(x, {5, 0, 3, 0}).first;
    EXPECT_EQ(y.shape(), (Shape{8, 64}));
    autograd::backward(y, tensor({8, 64}, 2));
    for (const std::int64_t i : {1, 3}) {
      const Tensor grad = both.grouped->weight(i).grad();
      ASSERT_EQ(grad.shape(), (Shape{64, 32}));
      EXPECT_EQ(values_of(grad), std::vector<double>(64 * 32, 0.0));
      EXPECT_EQ(values_of(both.grouped->bias(i).grad()), std::vector<double>(64, 0.0));
    }
  }
}

// labels: KitchenGroupedLinear.forward G19 D31
TEST_F(GroupedProducts, GroupsThatAreNoMultipleOfABlockEqualGroupsThatAreAlone) {
  expect_equal_step(twins(4, 128, 64, named("mxfp8")), {33, 1, 62, 0}, 3);
}

// labels: KitchenGroupedLinear.forward G20
TEST_F(GroupedProducts, SmallGroupsAreRightWhateverTheirAlignment) {
  const Twins both = twins(3, 256, 256, numbered(1));
  const Splits splits{8, 16, 64};
  const Tensor x = tensor({88, 256}, 5);
  const Tensor y = both.grouped->forward(x, splits).first.detach();
  std::int64_t start = 0;
  for (std::size_t i = 0; i < splits.size(); ++i) {
    const Tensor w = both.single[i]->weight.detach();
    ExactProduct exact =
        exact_product(values_of(x.slice(0, start, splits[i])), values_of(w), splits[i], 256, 256);
    const std::vector<double> bias = values_of(both.single[i]->bias.detach());
    for (std::size_t j = 0; j < exact.values.size(); ++j) exact.values[j] += bias[j % bias.size()];
    // (k + 3)·2^-24·Σ|a||b| of the product, then the bias: one rounding of a value below Σ|a||b| +
    // 1/2.
    const double bound = (256 + 5) * 0x1p-24 * (exact.largest_sum + 0.5);
    EXPECT_TRUE(close(exact.values, values_of(y.slice(0, start, splits[i])), bound, 0.0));
    start += splits[i];
  }
}

// labels: KitchenGroupedLinear.forward G21
TEST_F(GroupedProducts, OneRowMeetsAVeryWideExpert) {
  const Twins both = twins(1, 1536, 24576, numbered(2));
  const Tensor x = tensor({1, 1536}, 6);
  const std::clock_t start = std::clock();
  const Tensor y = both.grouped->forward(x, {1}).first;
  EXPECT_LT(std::clock() - start, 5 * CLOCKS_PER_SEC) << "of the processor, however busy it is";
  EXPECT_TRUE(same_bits(both.single[0]->forward(x).first, y));
}

// labels: KitchenGroupedLinear.forward R09
TEST_F(GroupedProducts, WeightGradientsOfEightGroupsOverAGridOfShapes) {
  const std::vector<Splits> grid{{4, 4, 4, 4, 4, 4, 4, 4}, {17, 0, 1, 3, 0, 0, 9, 2}};
  for (const std::int64_t in : {32, 1536}) {
    for (const std::int64_t out : {16, 768}) {
      const Twins both = twins(8, in, out, numbered(2));
      for (const Splits& splits : grid) expect_equal_step(both, splits, 7);
    }
  }
}

// labels: KitchenGroupedLinear.forward
TEST_F(GroupedProducts, OperandsAreQuantizedByTheExpertThatUsesThem) {
  const Twins both = twins(2, 32, 32, numbered(2));
  modules::OperandCallLog log;
  const modules::OperandObserverScope scope(&log);
  const Tensor x = leaf({5, 32}, 1);
  autograd::backward(both.grouped->forward(x, {2, 3}).first, tensor({5, 32}, 2));
  std::vector<std::string> seen;
  for (const modules::OperandInfo& info : log.infos()) {
    seen.push_back(info.module + " " + info.operand + "/" + info.product);
  }
  std::vector<std::string> wanted;
  for (const char* index : {"0", "1"}) {
    for (const char* use : {"x/fprop", "w/fprop", "w/dgrad", "x/wgrad", "g/dgrad", "g/wgrad"}) {
      wanted.push_back(std::string("mlp.experts.local_experts.") + index + ".linear_fc1 " + use);
    }
  }
  std::sort(seen.begin(), seen.end());
  std::sort(wanted.begin(), wanted.end());
  EXPECT_EQ(seen, wanted);
}

// labels: KitchenGroupedLinear.forward is_first_microbatch
TEST_F(GroupedProducts, WeightsAreQuantizedOnceUntilTheFlagIsSetAgain) {
  const auto quantized_weights = [&](bool disables_cache) {
    TransformerConfig settings = testing::small_transformer();
    settings.disable_parameter_transpose_cache = disables_cache;
    config = make_config(settings);
    const Twins both = twins(2, 32, 32, numbered(2));
    std::vector<std::int64_t> counts;
    for (const bool updated : {false, false, true}) {
      if (updated) both.grouped->is_first_microbatch = true;
      modules::OperandCallLog log;
      const modules::OperandObserverScope scope(&log);
      const Tensor x = leaf({5, 32}, 1);
      autograd::backward(both.grouped->forward(x, {2, 3}).first, tensor({5, 32}, 2));
      const auto entries = log.entries();
      counts.push_back(std::count_if(entries.begin(), entries.end(),
                                     [](const std::string& entry) { return entry[0] == 'w'; }));
    }
    return counts;
  };
  EXPECT_EQ(quantized_weights(false), (Splits{4, 0, 4}));
  EXPECT_EQ(quantized_weights(true), (Splits{4, 4, 4}));
}

// labels: KitchenGroupedLinear.forward gradient_accumulation_fusion
TEST_F(GroupedProducts, FusedWeightGradientsAreAddedToMainGrad) {
  TransformerConfig fused = testing::small_transformer();
  fused.gradient_accumulation_fusion = true;
  for (const Recipe& recipe : {numbered(1), numbered(2)}) {
    config = make_config(testing::small_transformer());
    const Twins plain = twins(2, 32, 16, recipe);
    config = make_config(fused);
    const Twins both = twins(2, 32, 16, recipe);
    const auto run = [&](KitchenGroupedLinear& layer) {
      const Tensor x = leaf({5, 32}, 1);
      autograd::backward(layer.forward(x, {5, 0}).first, tensor({5, 16}, 2));
    };
    EXPECT_TRUE(
        throws<AssertionError>([&] { run(*both.grouped); }, {"main_grad", "local_experts.0"}));
    for (const std::int64_t i : {0, 1}) {
      both.grouped->weight(i).set_main_grad(Tensor::zeros(context, {16, 32}, DType::float32));
    }
    run(*both.grouped);
    run(*plain.grouped);
    for (const std::int64_t i : {0, 1}) {
      EXPECT_TRUE(both.grouped->weight(i).grad_added_to_main_grad());
      EXPECT_FALSE(both.grouped->weight(i).grad().defined());
      EXPECT_EQ(values_of(plain.grouped->weight(i).grad()),
                values_of(both.grouped->weight(i).main_grad()));
    }
  }
}

/// Columns [start, start + count) of row-major values with `width` columns.
std::vector<double> columns(const std::vector<double>& values, int width, int start, int count) {
  std::vector<double> result;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int column = static_cast<int>(i) % width;
    if (column >= start && column < start + count) result.push_back(values[i]);
  }
  return result;
}

/// y and dx of a grouped layer that is no expert, on this rank.
std::pair<Tensor, Tensor> run_split(const std::string& mode, const Tensor& x, const Tensor& g) {
  GroupedLinearArgs a = grouped_args(make_config(testing::small_transformer()), mode);
  a.is_expert = false;
  KitchenGroupedLinear layer(2, 4, 6, a);
  layer.finish_init(linear_recipe(1, "grouped"));
  for (const std::int64_t i : {0, 1}) ops::fill_inplace(layer.bias(i).detach(), 0.5f);
  autograd::set_requires_grad(x);
  const Tensor y = layer.forward(x, {1, 2}).first;
  autograd::backward(y, g);
  return {y.detach(), autograd::grad_of(x)};
}

// labels: KitchenGroupedLinear.forward collectives
TEST_F(GroupedProducts, WithoutExpertsTwoRanksCommunicateAndEqualOne) {
  const auto x_of = [&](const ContextPtr& on) {
    return testing::tensor_of(on, {3, 4}, DType::float32, small_values(12, 1));
  };
  const auto g_of = [&](const ContextPtr& on) {
    return testing::tensor_of(on, {3, 6}, DType::float32, small_values(18, 2));
  };
  // Sums of 4 and 6 products below 8 in fp32, in another order: a few times 2^-21.
  for (const bool row : {false, true}) {
    const std::string mode = row ? "row" : "column";
    const auto whole = run_split(mode, x_of(context), g_of(context));
    const std::vector<double> whole_y = values_of(whole.first);
    const std::vector<double> whole_dx = values_of(whole.second);
    testing::on_ranks(2, [&](int rank) {
      const ContextPtr own = default_context();
      const Tensor x = row ? ops::contiguous(x_of(own).slice(1, 2 * rank, 2)) : x_of(own);
      const Tensor g = row ? g_of(own) : ops::contiguous(g_of(own).slice(1, 3 * rank, 3));
      const auto [y_part, dx_part] = run_split(mode, x, g);
      EXPECT_TRUE(
          close(row ? whole_y : columns(whole_y, 6, 3 * rank, 3), values_of(y_part), 1e-6, 0.0));
      EXPECT_TRUE(
          close(row ? columns(whole_dx, 4, 2 * rank, 2) : whole_dx, values_of(dx_part), 1e-6, 0.0));
    });
  }
}

}  // namespace
}  // namespace kitchen
