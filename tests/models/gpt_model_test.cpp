#include "kitchen/models/gpt_model.h"

#include "kitchen/autograd/backward.h"
#include "kitchen/autograd/math_functions.h"
#include "kitchen/base/error.h"
#include "kitchen/config/recipe_config.h"
#include "kitchen/config/yaml.h"
#include "models/tiny_gpt.h"
#include "support/compare.h"
#include "support/expect_error.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace kitchen {
namespace {

using testing::build;
using testing::same_bits;
using testing::throws;
using testing::TinyGPT;

void replace(std::string& text, const std::string& from, const std::string& to) {
  const std::size_t place = text.find(from);
  if (place != std::string::npos) text.replace(place, from.size(), to);
}

/// Loads the weights of a model of the local topology into one whose norms are inside of the
/// linears.
void load_fused(const GPTModel& local, GPTModel& fused) {
  StateDict state;
  const StateDict original = local.state_dict();
  for (const auto& [name, tensor] : original.items()) {
    std::string key = name;
    replace(key, "input_layernorm.", "self_attention.linear_qkv.layer_norm_");
    replace(key, "pre_mlp_layernorm.", "mlp.linear_fc1.layer_norm_");
    state.set(key, tensor);
  }
  fused.load_state_dict(state);
}

void quantize(TinyGPT& tiny, std::int64_t recipe) {
  tiny.config.use_kitchen = true;
  tiny.config.quant_recipe =
      std::make_shared<const RecipeConfig>(kitchen_quantization_recipe_config(recipe));
}

/// Gradients of the summed loss, by parameter name.
std::map<std::string, Tensor> gradients(GPTModel& model) {
  autograd::backward(autograd::sum(testing::losses(model)));
  std::map<std::string, Tensor> all;
  for (const auto& [name, parameter] : model.named_parameters()) all[name] = parameter->grad();
  return all;
}

// labels: GPTModel KitchenSpecProvider LocalSpecProvider FusedSpecProvider
TEST(GPTModel, TopologyAndRecipeOneDoNotChangeTheResult) {
  for (const char* norm : {"LayerNorm", "RMSNorm"}) {
    TinyGPT tiny;
    tiny.config.normalization = norm;
    const auto local = build(tiny);
    (void)testing::fill(*local);
    const Tensor expected = testing::logits(*local).detach();

    tiny.fused = true;
    const auto fused = build(tiny);
    load_fused(*local, *fused);
    // The same kernels on the same values: the bits agree.
    EXPECT_TRUE(same_bits(expected, testing::logits(*fused).detach()));

    quantize(tiny, 1);
    const auto kitchen_fused = build(tiny);
    load_fused(*local, *kitchen_fused);
    EXPECT_TRUE(same_bits(expected, testing::logits(*kitchen_fused).detach()));

    tiny.fused = false;
    const auto kitchen_local = build(tiny);
    kitchen_local->load_state_dict(local->state_dict());
    EXPECT_TRUE(same_bits(expected, testing::logits(*kitchen_local).detach()));

    tiny.config.use_kitchen_attention = true;
    const auto sdpa = build(tiny);
    sdpa->load_state_dict(local->state_dict());
    EXPECT_TRUE(same_bits(expected, testing::logits(*sdpa).detach()));

    tiny.config.kitchen_attention_backend = "fa";
    const auto flash = build(tiny);
    flash->load_state_dict(local->state_dict());
    // Another order of the same fp32 sums, over 4 keys: a few ulp of logits of order 1.
    EXPECT_TRUE(testing::close(expected, testing::logits(*flash).detach(), 1e-5, 1e-5));
  }
}

// labels: GPTModel KitchenSpecProvider
TEST(GPTModel, QuantizedRecipeChangesTheResultALittle) {
  TinyGPT tiny;
  const auto plain = build(tiny);
  (void)testing::fill(*plain);
  quantize(tiny, 2);
  const auto quantized = build(tiny);
  quantized->load_state_dict(plain->state_dict());
  const Tensor expected = testing::logits(*plain).detach();
  const Tensor found = testing::logits(*quantized).detach();
  EXPECT_FALSE(same_bits(expected, found));
  // E4M3 rounds by up to 2^-4; calc_diff squares it: (1/16)²/3 a product, a few products in a row.
  EXPECT_TRUE(testing::error_below(expected, found, 1e-2));
}

// labels: GPTModel apply_query_key_layer_scaling
TEST(GPTModel, QueryKeyLayerScalingIsUndoneInTheSoftmax) {
  TinyGPT tiny;
  tiny.config.num_layers = 3;
  const auto plain = build(tiny);
  (void)testing::fill(*plain);
  tiny.config.apply_query_key_layer_scaling = true;
  const auto scaled = build(tiny);
  scaled->load_state_dict(plain->state_dict());
  EXPECT_TRUE(testing::close(testing::logits(*plain).detach(), testing::logits(*scaled).detach(),
                             1e-5, 1e-5));
}

// labels: SelfAttention autograd.recompute T13
TEST(GPTModel, SelectiveRecomputeGivesTheSameGradientsAndRandomNumbers) {
  for (const bool kitchen_layers : {false, true}) {
    TinyGPT tiny;
    tiny.config.attention_dropout = 0.1;
    tiny.config.hidden_dropout = 0.1;
    tiny.config.num_layers = 2;
    if (kitchen_layers) {
      quantize(tiny, 2);
      tiny.config.use_kitchen_attention = true;
    }
    const auto plain = build(tiny);
    (void)testing::fill(*plain);
    const auto expected = gradients(*plain);
    const GeneratorState expected_state = default_generator();
    const auto expected_states = get_cuda_rng_tracker().get_states();

    tiny.config.recompute_granularity = "selective";
    const auto again = build(tiny);
    (void)testing::fill(*again);
    const auto found = gradients(*again);
    ASSERT_EQ(found.size(), expected.size());
    for (const auto& [name, gradient] : expected) {
      EXPECT_TRUE(same_bits(gradient, found.at(name))) << name;
    }
    EXPECT_EQ(default_generator(), expected_state);
    EXPECT_EQ(get_cuda_rng_tracker().get_states(), expected_states);
  }
}

// labels: autograd.recompute SelfAttention
TEST(GPTModel, SelectiveRecomputeKeepsNoAttentionProbabilities) {
  const auto saves = [](bool recompute) {
    TinyGPT tiny;
    if (recompute) tiny.config.recompute_granularity = "selective";
    const auto model = build(tiny);
    std::set<std::string> names;
    for (const auto& entry : autograd::describe_tape(autograd::sum(testing::losses(*model)))) {
      names.insert(entry.name);
    }
    return names;
  };
  EXPECT_EQ(saves(false).count("Softmax"), 1u);
  EXPECT_EQ(saves(true).count("Softmax"), 0u);
  EXPECT_EQ(saves(true).count("Recompute"), 1u);
}

// labels: GPTModel Dropout
TEST(GPTModel, DropoutActsInTrainingOnlyAndFollowsTheSeed) {
  TinyGPT tiny;
  const auto plain = build(tiny);
  (void)testing::fill(*plain);
  const Tensor expected = testing::logits(*plain).detach();
  for (const bool in_attention : {false, true}) {
    tiny.config.hidden_dropout = in_attention ? 0.0 : 0.5;
    tiny.config.attention_dropout = in_attention ? 0.5 : 0.0;
    const auto model = build(tiny);
    (void)testing::fill(*model);
    model_parallel_cuda_manual_seed(5);
    const Tensor first = testing::logits(*model).detach();
    const Tensor second = testing::logits(*model).detach();
    EXPECT_FALSE(same_bits(first, second));
    EXPECT_FALSE(same_bits(expected, first));
    model_parallel_cuda_manual_seed(5);
    EXPECT_TRUE(same_bits(first, testing::logits(*model).detach()));
    model->eval();
    EXPECT_TRUE(same_bits(expected, testing::logits(*model).detach()));
    EXPECT_TRUE(same_bits(expected, testing::logits(*model).detach()));
    model->train();
    EXPECT_FALSE(same_bits(expected, testing::logits(*model).detach()));
  }
}

// labels: GPTModel C15 finish_init
TEST(GPTModel, LayerWithoutAConfigurationIsNamedByItsPath) {
  const auto with_recipe = [](const std::string& matchers) {
    TinyGPT tiny;
    tiny.config.use_kitchen = true;
    tiny.config.quant_recipe = std::make_shared<const RecipeConfig>(RecipeConfig::from_config_dict(
        *parse_yaml("configs:\n  a: {kitchen_config_type: QLinearParams, recipe_idx: 2}\n"
                    "  fa: {kitchen_config_type: QAttentionParams, recipe_idx: 1}\nmatchers:\n" +
                        matchers,
                    "r.yaml")
             .get_if<ConfigDict>()));
    (void)build(tiny);
  };
  EXPECT_TRUE(throws<AssertionError>(
      [&] { with_recipe("  m: {type: glob, pattern: '*qkv', config: a, enabled: true}\n"); },
      {"KitchenRowParallelLinear", "(module decoder.layers.0.self_attention.linear_proj)"}));
  EXPECT_TRUE(throws<AssertionError>(
      [&] {
        with_recipe(
            "  n: {type: glob, pattern: '*fc2', config: fa, enabled: true}\n"
            "  m: {type: glob, pattern: '*', config: a, enabled: true}\n");
      },
      {"qlinear_params", "(module decoder.layers.0.mlp.linear_fc2)"}));
}

// labels: GPTModel
TEST(GPTModel, BadSizesAndShapesAreRefused) {
  TinyGPT tiny;
  tiny.positions = "alibi";
  EXPECT_TRUE(throws<ValueError>([&] { (void)build(tiny); }, {"alibi", "learned_absolute"}));
  tiny = TinyGPT();
  tiny.config.normalization = "layernorm";
  EXPECT_TRUE(throws<ValueError>([&] { (void)build(tiny); }, {"layernorm", "'RMSNorm'"}));
  tiny = TinyGPT();
  tiny.config.num_moe_experts = 2;
  EXPECT_TRUE(throws<NotImplementedError>([&] { (void)build(tiny); }, {"num_moe_experts"}));

  const auto model = build(TinyGPT());
  const ContextPtr context = default_context();
  const auto ids = [&](const Shape& shape) { return Tensor::zeros(context, shape, DType::int64); };
  EXPECT_TRUE(throws<ValueError>(
      [&] {
        (void)model->forward(ids({1, 5}), ids({1, 5}), std::nullopt);
      },
      {"input_ids", "[1, 5]", "at most 4 positions"}));
  EXPECT_TRUE(throws<ValueError>(
      [&] {
        (void)model->forward(ids({1, 4}), ids({1, 3}), std::nullopt);
      },
      {"position_ids", "[1, 3]", "[1, 4]"}));
  EXPECT_TRUE(throws<ValueError>(
      [&] {
        (void)model->forward(ids({2, 4}), ids({2, 4}), std::nullopt, ids({4, 2}));
      },
      {"labels", "[4, 2]"}));
  EXPECT_TRUE(throws<ValueError>([&] { (void)model->forward(ids({4}), ids({4}), std::nullopt); },
                                 {"input_ids", "[batch, sequence]"}));
}

// labels: GPTModel
TEST(GPTModel, NoSequenceGivesNoLoss) {
  const auto model = build(TinyGPT());
  const Tensor none = Tensor::zeros(default_context(), {0, 4}, DType::int64);
  EXPECT_EQ(model->forward(none, none, std::nullopt, none).shape(), (Shape{0, 4}));
}

// labels: GPTModel init_method
TEST(GPTModel, EqualSeedsGiveEqualWeightsOfTheWantedSpread) {
  TinyGPT tiny;
  tiny.config.hidden_size = 64;
  tiny.config.num_layers = 2;
  const auto first = build(tiny, 3);
  const auto second = build(tiny, 3);
  const auto other = build(tiny, 4);
  const StateDict state = first->state_dict();
  const StateDict repeated = second->state_dict();
  for (const auto& [name, tensor] : repeated.items()) {
    if (name.find("_extra_state") != std::string::npos) continue;
    EXPECT_TRUE(same_bits(state.at(name), tensor)) << name;
  }
  const auto spread = [](const Tensor& tensor) {
    double sum = 0.0;
    for (const double v : testing::values_of(tensor)) sum += v * v;
    return std::sqrt(sum / static_cast<double>(tensor.numel()));
  };
  const std::string qkv = "decoder.layers.1.self_attention.linear_qkv.weight";
  EXPECT_FALSE(same_bits(state.at(qkv), other->state_dict().at(qkv)));
  EXPECT_FALSE(
      same_bits(state.at(qkv), state.at("decoder.layers.0.self_attention.linear_qkv.weight")));
  // The spread of n draws is itself spread by 1/sqrt(2n): 0.6 % for 12288, 1.1 % for 4096; five of
  // these.
  EXPECT_NEAR(spread(state.at(qkv)), 0.02, 0.02 * 0.032);
  EXPECT_NEAR(spread(state.at("decoder.layers.1.self_attention.linear_proj.weight")), 0.01,
              0.01 * 0.055);  // 0.02 / sqrt(2·2 layers)
}

/// All nodes of a graph, each once.
void collect(const std::shared_ptr<autograd::Node>& node, std::set<autograd::Node*>& seen) {
  if (!node || !seen.insert(node.get()).second) return;
  for (const autograd::Edge& edge : node->edges) collect(edge.node, seen);
}

// labels: GPTModel ruling-6.11
TEST(GPTModel, Bf16ModelHoldsNoWiderParameterOrOperand) {
  for (const std::int64_t recipe : {0, 1, 2}) {
    TinyGPT tiny;
    tiny.config.bf16 = true;
    tiny.config.params_dtype = DType::bfloat16;
    if (recipe > 0) quantize(tiny, recipe);
    const auto model = build(tiny);
    for (const auto& [name, parameter] : model->named_parameters()) {
      EXPECT_EQ(parameter->dtype(), DType::bfloat16) << name;
    }
    const Tensor sum = autograd::sum(testing::losses(*model));
    std::set<autograd::Node*> nodes;
    collect(autograd::variable_meta(sum)->grad_fn, nodes);
    EXPECT_GT(nodes.size(), 20u);
    for (autograd::Node* node : nodes) {
      for (const Tensor& saved : node->saved_tensors()) {
        if (!saved.defined() || saved.dtype() != DType::float32) continue;
        // float32 is for one statistic a row or a scale, never for a whole activation [tokens,
        // hidden].
        EXPECT_LE(saved.numel(), testing::kBatch * testing::kSeq) << node->name();
      }
    }
    EXPECT_EQ(testing::logits(*model).dtype(), DType::bfloat16);
  }
}

}  // namespace
}  // namespace kitchen
