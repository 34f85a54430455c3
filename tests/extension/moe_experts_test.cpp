#include "kitchen/modules/moe_experts.h"

#include "kitchen/autograd/backward.h"
#include "kitchen/base/error.h"
#include "kitchen/config/recipe_config.h"
#include "kitchen/extension/kitchen_grouped_linear.h"
#include "kitchen/extension/kitchen_linear.h"
#include "kitchen/extension/kitchen_spec_provider.h"
#include "kitchen/modules/local_spec_provider.h"
#include "kitchen/ops/elementwise.h"
#include "support/compare.h"
#include "support/expect_error.h"
#include "support/layers.h"
#include "support/rank_test.h"
#include "support/ranks.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

namespace kitchen {
namespace {

using testing::same_bits;
using testing::throws;
using testing::values_of;

using Splits = std::vector<std::int64_t>;

ConfigDict linear(std::int64_t index) {
  return {{"kitchen_config_type", "QLinearParams"}, {"recipe_idx", index}};
}
ConfigDict rule(const char* pattern, const char* key) {
  return {{"type", "glob"}, {"pattern", pattern}, {"config", key}, {"enabled", true}};
}

/// fc1 by one linear recipe, all else by another.
std::shared_ptr<const RecipeConfig> two_recipes(std::int64_t fc1, std::int64_t rest) {
  const ConfigDict configs{{"first", linear(fc1)}, {"rest", linear(rest)}};
  const ConfigDict matchers{{"fc1", rule("*fc1", "first")}, {"default", rule("*", "rest")}};
  return std::make_shared<const RecipeConfig>(
      RecipeConfig::from_config_dict({{"configs", configs}, {"matchers", matchers}}));
}

class MoeExperts : public testing::RankTest {
 protected:
  MoeExperts() {
    settings.num_moe_experts = 3;
    settings.hidden_size = 32;
    settings.moe_ffn_hidden_size = 64;
    settings.gated_linear_unit = true;
    settings.activation_func = ActivationFunc::silu;
  }

  [[nodiscard]] std::shared_ptr<Experts> build(bool grouped,
                                               std::shared_ptr<const RecipeConfig> recipe,
                                               std::int64_t num_local_experts = 3) const {
    const KitchenSpecProvider provider(std::make_shared<LocalSpecProvider>());
    const auto [type, parts] = provider.grouped_mlp_modules(grouped, false);
    auto experts =
        build_module_as<Experts>(type, BuildArgs({}, {{"num_local_experts", num_local_experts},
                                                      {"config", make_config(settings)},
                                                      {"submodules", *parts}}));
    for (const auto& [path, module] : experts->named_modules()) {
      auto* layer = dynamic_cast<FinishInit*>(module.get());
      if (layer == nullptr) continue;
      layer->finish_init(get_quant_config_or_none("decoder.layers.0.mlp.experts." + path, recipe));
    }
    return experts;
  }
  TransformerConfig settings = testing::small_transformer();
};

std::map<std::string, Parameter*> parameters_of(const Experts& experts) {
  std::map<std::string, Parameter*> result;
  for (const auto& [name, parameter] : experts.named_parameters()) result[name] = parameter;
  return result;
}

/// "linear_fc1.weight2" -> "local_experts.2.linear_fc1.weight".
std::string sequential_name(const std::string& grouped) {
  return "local_experts." + grouped.substr(grouped.size() - 1) + "." +
         grouped.substr(0, grouped.size() - 1);
}

// labels: TEGroupedMLP SequentialMLP KitchenGroupedLinear D36
TEST_F(MoeExperts, GroupedAndSequentialExpertsHaveEqualBits) {
  for (const bool bf16 : {false, true}) {
    settings.bf16 = bf16;
    settings.params_dtype = bf16 ? DType::bfloat16 : DType::float32;
    settings.add_bias_linear = !bf16;  // in bf16 the two round fc1's bias at different places
    for (const auto& [fc1, fc2] : std::vector<std::pair<int, int>>{{1, 1}, {2, 2}, {1, 2}}) {
      SCOPED_TRACE(std::to_string(fc1) + " " + std::to_string(fc2) + (bf16 ? " bf16" : " fp32"));
      const auto grouped = build(true, two_recipes(fc1, fc2));
      const auto sequential = build(false, two_recipes(fc1, fc2));
      const auto run = [&](Experts& experts, const Tensor& x, const Tensor& probs) {
        const Tensor y = experts.forward(x, {5, 0, 4}, probs).first;
        autograd::backward(y, tensor({9, 32}, 3, settings.params_dtype));
        return y.detach();
      };
      const Tensor x = leaf({9, 32}, 1, settings.params_dtype);
      const Tensor same_x = leaf({9, 32}, 1, settings.params_dtype);
      const Tensor probs = leaf({9}, 2, settings.params_dtype);
      const Tensor same_probs = leaf({9}, 2, settings.params_dtype);
      EXPECT_TRUE(same_bits(run(*sequential, same_x, same_probs), run(*grouped, x, probs)));
      EXPECT_TRUE(same_bits(autograd::grad_of(same_x), autograd::grad_of(x)));
      EXPECT_TRUE(same_bits(autograd::grad_of(same_probs), autograd::grad_of(probs)));
      const auto others = parameters_of(*sequential);
      for (const auto& [name, parameter] : parameters_of(*grouped)) {
        const Parameter& other = *others.at(sequential_name(name));
        EXPECT_TRUE(same_bits(other.detach(), parameter->detach())) << name;
        EXPECT_TRUE(same_bits(other.grad(), parameter->grad())) << name;
      }
    }
  }
}

// labels: TEGroupedMLP KitchenGroupedLinear.finish_init RecipeMatching
TEST_F(MoeExperts, EachLayerHasTheRecipeOfItsPath) {
  const auto experts = build(true, two_recipes(1, 2));
  std::map<std::string, std::int64_t> numbers;
  for (const auto& [path, module] : experts->named_children()) {
    const auto& layer = dynamic_cast<const KitchenGroupedLinear&>(*module);
    numbers[path] = layer.kitchen_quant_params->qlinear_params->number.value();
    EXPECT_EQ(layer.kitchen_quant_params->match_input.module_path,
              "decoder.layers.0.mlp.experts." + path);
  }
  EXPECT_EQ(numbers, (std::map<std::string, std::int64_t>{{"linear_fc1", 1}, {"linear_fc2", 2}}));
}

/// Key and place of each shard; the shards of a factory one by one.
std::set<std::tuple<std::string, Shape, Shape>> places_of(const ShardedStateDict& dict) {
  std::set<std::tuple<std::string, Shape, Shape>> places;
  for (const auto& [name, value] : dict.items()) {
    if (const auto* factory = std::get_if<ShardedTensorFactory>(&value)) {
      for (const ShardedTensor& shard : factory->build()) {
        places.emplace(shard.key, shard.global_shape, shard.global_offset);
      }
    } else if (const auto* shard = std::get_if<ShardedTensor>(&value)) {
      places.emplace(shard->key, shard->global_shape, shard->global_offset);
    } else {
      const auto& object = std::get<ShardedObject>(value);
      places.emplace(object.key, object.global_shape, object.global_offset);
    }
  }
  return places;
}

// labels: TEGroupedMLP SequentialMLP KitchenGroupedLinear._sharded_state_dict_grouped sharded_state_dict
TEST_F(MoeExperts, CheckpointsOfGroupedAndSequentialExpertsAreInterchangeable) {
  const auto grouped = build(true, two_recipes(1, 2));
  const auto sequential = build(false, two_recipes(1, 2));
  const auto places = places_of(grouped->sharded_state_dict("mlp.experts.", {{0, 1, 2}}));
  EXPECT_EQ(places, places_of(sequential->sharded_state_dict("mlp.experts.", {{0, 1, 2}})));
  // 3 experts: gate and up of fc1's weight and bias, fc2's weight and bias, 2 extra states.
  EXPECT_EQ(places.size(), 3u * (4 + 2 + 2));
  const auto up = std::tuple<std::string, Shape, Shape>("mlp.experts.experts.linear_fc1.weight",
                                                        {2, 3, 128, 32}, {1, 2, 64, 0});
  EXPECT_EQ(places.count(up), 1u);
}

// labels: TEGroupedMLP SequentialMLP KitchenLinear.finish_init RngTracker
TEST_F(MoeExperts, TheExpertsOfTwoRanksStartAsThoseOfOne) {
  std::map<std::string, std::vector<double>> whole;
  const auto one_rank = build(true, two_recipes(1, 1), 4);
  for (const auto& [name, parameter] : parameters_of(*one_rank)) {
    whole[name] = values_of(parameter->detach());
  }
  settings.expert_model_parallel_size = 2;
  settings.num_moe_experts = 4;
  parallel::RunRanksOptions options;
  options.make_context = [](int) { return testing::poisoned_context(); };
  parallel::run_ranks(
      2,
      [&] {
        ParallelSizes sizes;
        sizes.expert = 2;
        initialize_model_parallel(sizes);
        model_parallel_cuda_manual_seed(1234);
        const int rank = current_rank_state().rank();
        const auto sequential_experts = build(false, two_recipes(1, 1), 2);
        const auto sequential = parameters_of(*sequential_experts);
        const auto grouped = build(true, two_recipes(1, 1), 2);
        for (const auto& [name, parameter] : parameters_of(*grouped)) {
          const std::string leaf = name.substr(0, name.size() - 1);
          const int global = name.back() - '0' + 2 * rank;
          EXPECT_EQ(whole.at(leaf + std::to_string(global)), values_of(parameter->detach()))
              << name;
          EXPECT_EQ(whole.at(leaf + std::to_string(global)),
                    values_of(sequential.at(sequential_name(name))->detach()))
              << name;
          EXPECT_FALSE(parameter->allreduce) << name;
        }
        const ShardedStateDict dict = grouped->sharded_state_dict();
        const auto& last = std::get<ShardedTensor>(dict.at("linear_fc2.weight1"));
        EXPECT_EQ(last.global_shape, (Shape{4, 32, 64}));
        EXPECT_EQ(last.global_offset, (Shape{2 * rank + 1, 0, 0}));
        EXPECT_EQ(places_of(dict), places_of(sequential_experts->sharded_state_dict()));
      },
      options);
}

// labels: TEGroupedMLP SequentialMLP GroupedMLP
TEST_F(MoeExperts, WhatDoesNotFitIsRefusedByName) {
  for (const bool grouped : {false, true}) {
    const auto experts = build(grouped, two_recipes(1, 1));
    const std::string name = grouped ? "TEGroupedMLP" : "SequentialMLP";
    const auto refused = [&](const Tensor& x, const Splits& splits, const Tensor& probs) {
      return throws<ValueError>([&] { (void)experts->forward(x, splits, probs); },
                                {name, "expected"});
    };
    EXPECT_TRUE(refused(tensor({4, 32}, 1), {2, 2}, tensor({4}, 2)));
    EXPECT_TRUE(refused(tensor({4, 32}, 1), {2, 2, 1}, tensor({4}, 2)));
    EXPECT_TRUE(refused(tensor({4, 32}, 1), {2, 1, 1}, tensor({3}, 2)));
    EXPECT_TRUE(refused(tensor({4, 1, 32}, 1), {2, 1, 1}, tensor({4}, 2)));
    settings.moe_apply_probs_on_input = true;
    EXPECT_TRUE(throws<NotImplementedError>([&] { (void)build(grouped, two_recipes(1, 1)); },
                                            {name, "moe_apply_probs_on_input"}));
    settings.moe_apply_probs_on_input = false;
  }
  EXPECT_TRUE(throws<NotImplementedError>([] { (void)build_module(module_type<GroupedMLP>(), {}); },
                                          {"GroupedMLP", "legacy"}));
}

}  // namespace
}  // namespace kitchen
