#include "kitchen/models/gpt_model.h"

#include "kitchen/autograd/backward.h"
#include "kitchen/autograd/math_functions.h"
#include "kitchen/base/error.h"
#include "kitchen/extension/kitchen_column_parallel_linear.h"
#include "kitchen/extension/kitchen_dot_product_attention.h"
#include "kitchen/extension/kitchen_flash_attention.h"
#include "kitchen/extension/kitchen_layer_norm_column_parallel_linear.h"
#include "kitchen/extension/kitchen_row_parallel_linear.h"
#include "kitchen/extension/kitchen_spec_provider.h"
#include "kitchen/models/gpt_layer_specs.h"
#include "kitchen/modules/local_spec_provider.h"
#include "kitchen/modules/quantized_operand.h"
#include "kitchen/ops/elementwise.h"
#include "support/compare.h"
#include "support/expect_error.h"
#include "support/layers.h"
#include "support/rank_test.h"

#include <gtest/gtest.h>

#include <typeinfo>

namespace kitchen {
namespace {

using testing::same_bits;
using testing::throws;

ConfigDict rule(const char* pattern, const char* key) {
  return {{"type", "glob"}, {"pattern", pattern}, {"config", key}, {"enabled", true}};
}

ConfigDict linear(std::int64_t index) {
  return {{"kitchen_config_type", "QLinearParams"}, {"recipe_idx", index}};
}

std::shared_ptr<const RecipeConfig> recipe(const ConfigDict& configs, const ConfigDict& matchers) {
  return std::make_shared<const RecipeConfig>(
      RecipeConfig::from_config_dict({{"configs", configs}, {"matchers", matchers}}));
}

/// `*fc2 -> bf16`, `* -> fp8_cs`.
std::shared_ptr<const RecipeConfig> two_rules() {
  return recipe({{"bf16", linear(1)}, {"fp8_cs", linear(2)}},
                {{"keep_fc2", rule("*fc2", "bf16")}, {"default", rule("*", "fp8_cs")}});
}

class ModelResolution : public testing::RankTest {
 protected:
  static TransformerConfig dense_config() {
    TransformerConfig config = testing::small_transformer();  // 2 layers, hidden 12, 4 heads
    config.gated_linear_unit = true;
    config.activation_func = ActivationFunc::silu;
    config.add_bias_linear = false;
    config.use_kitchen = true;
    config.quant_recipe = two_rules();
    return config;
  }
  /// A model over the fused fallback, or over the local one.
  static std::shared_ptr<GPTModel> build(const TransformerConfig& config, bool fused = true) {
    std::shared_ptr<BackendSpecProvider> fallback = std::make_shared<LocalSpecProvider>();
    if (fused) fallback = std::make_shared<FusedSpecProvider>();
    const KitchenSpecProvider provider(fallback, config.use_kitchen_attention,
                                       config.kitchen_attention_backend);
    GPTModelOptions options;
    options.vocab_size = 16;
    options.max_sequence_length = 8;
    return std::make_shared<GPTModel>(make_config(config), gpt_block_submodules(provider, config),
                                      options);
  }
  static std::shared_ptr<Module> at(const GPTModel& model, const std::string& path) {
    for (const auto& [name, module] : model.named_modules()) {
      if (name == path) return module;
    }
    return nullptr;
  }
  [[nodiscard]] Tensor ids(const std::vector<std::int64_t>& values) const {
    return Tensor::from_vector(context, {1, static_cast<std::int64_t>(values.size())}, values);
  }
  /// Gradients of all parameters after one forward and backward.
  std::vector<std::pair<std::string, Tensor>> gradients_of(GPTModel& model) const {
    model_parallel_cuda_manual_seed(77);
    const Tensor losses = model.forward(ids({1, 5, 2, 7, 3, 0, 9, 4}), ids({0, 1, 2, 3, 4, 5, 6, 7}), {},
                                        ids({5, 2, 7, 3, 0, 9, 4, 11}));
    autograd::backward(autograd::sum(losses));
    std::vector<std::pair<std::string, Tensor>> all;
    for (const auto& [name, parameter] : model.named_parameters()) {
      all.emplace_back(name, parameter->grad());
      autograd::zero_grad(*parameter);
    }
    return all;
  }
};

template <class Layer>
void expect_layer(const std::shared_ptr<Module>& module, const std::string& path, const char* key,
                  std::int64_t recipe_index) {
  auto* layer = dynamic_cast<Layer*>(module.get());
  ASSERT_NE(layer, nullptr) << path;
  EXPECT_TRUE(layer->init_finished);
  EXPECT_EQ(layer->kitchen_quant_params->params_config_key, key);
  EXPECT_EQ(layer->kitchen_quant_params->match_input.module_path, path);
  EXPECT_EQ(layer->kitchen_quant_params->match_input.layer_number, path[15] - '0');
  EXPECT_EQ(layer->kitchen_quant_params->qlinear_params->number, recipe_index);
}

// labels: model_resolution GPTModel
TEST_F(ModelResolution, EveryLayerGetsTheClassAndRecipeOfItsPath) {
  const auto model = build(dense_config());
  for (const std::string layer : {"decoder.layers.0.", "decoder.layers.1."}) {
    const std::string qkv = layer + "self_attention.linear_qkv";
    expect_layer<KitchenLayerNormColumnParallelLinear>(at(*model, qkv), qkv, "fp8_cs", 2);
    const std::string proj = layer + "self_attention.linear_proj";
    expect_layer<KitchenRowParallelLinear>(at(*model, proj), proj, "fp8_cs", 2);
    const std::string fc1 = layer + "mlp.linear_fc1";
    expect_layer<KitchenLayerNormColumnParallelLinear>(at(*model, fc1), fc1, "fp8_cs", 2);
    const std::string fc2 = layer + "mlp.linear_fc2";
    expect_layer<KitchenRowParallelLinear>(at(*model, fc2), fc2, "bf16", 1);
    EXPECT_EQ(at(*model, layer + "self_attention.core_attention")->class_name(), "DotProductAttention");
    EXPECT_EQ(at(*model, layer + "input_layernorm")->class_name(), "IdentityOp");
    EXPECT_EQ(at(*model, layer + "pre_mlp_layernorm")->class_name(), "IdentityOp");
  }
  EXPECT_EQ(at(*model, "output_layer")->class_name(), "ColumnParallelLinear");
  const auto local = build(dense_config(), /*fused=*/false);
  const std::string fc1 = "decoder.layers.1.mlp.linear_fc1";
  expect_layer<KitchenColumnParallelLinear>(at(*local, fc1), fc1, "fp8_cs", 2);
  EXPECT_EQ(at(*local, "decoder.layers.1.pre_mlp_layernorm")->class_name(), "LayerNormImpl");
}

// labels: model_resolution GPTModel OperandCallLog
TEST_F(ModelResolution, OnlyTheLayersOfTheRecipeAreQuantized) {
  const auto model = build(dense_config());
  modules::OperandCallLog log;
  {
    const modules::OperandObserverScope scope(&log);
    (void)gradients_of(*model);
  }
  std::map<std::string, int> counts;
  for (const modules::OperandInfo& info : log.infos()) ++counts[info.module];
  EXPECT_EQ(counts.size(), 6u);  // three quantized linears in each of two layers
  for (const auto& [module, count] : counts) {
    EXPECT_EQ(module.find("fc2"), std::string::npos) << module;
    EXPECT_EQ(count, 6) << module;
  }
}

// labels: model_resolution D14 KitchenDotProductAttention KitchenFlashAttention
TEST_F(ModelResolution, ACompoundRecipeReachesTheAttention) {
  TransformerConfig config = dense_config();
  config.use_kitchen_attention = true;
  const ConfigDict mixed{
      {"kitchen_config_type", "CompoundParams"},
      {"configs", ConfigList{linear(2),
                             ConfigDict{{"kitchen_config_type", "QAttentionParams"}, {"recipe_idx", 6001}},
                             ConfigDict{{"kitchen_config_type", "QFlashAttentionParams"},
                                        {"recipe_name", "triton_fa_bf16_for_all_natural"}}}}};
  config.quant_recipe = recipe({{"mixed", mixed}}, {{"all", rule("*", "mixed")}});
  const std::string path = "decoder.layers.1.self_attention.core_attention";
  const auto sdpa_model = build(config);
  const auto* sdpa = dynamic_cast<KitchenDotProductAttention*>(at(*sdpa_model, path).get());
  ASSERT_NE(sdpa, nullptr);
  EXPECT_EQ(sdpa->kitchen_quant_params->params_config_key, "mixed");
  EXPECT_EQ(sdpa->qattention_params->number, 6001);
  EXPECT_EQ(sdpa->geometry.layer_number, 2) << "one-based, D15";
  EXPECT_EQ(sdpa->kitchen_quant_params->match_input.layer_number, 1) << "zero-based, D15";
  config.kitchen_attention_backend = "fa";
  const auto fa_model = build(config);
  const auto* flash = dynamic_cast<KitchenFlashAttention*>(at(*fa_model, path).get());
  ASSERT_NE(flash, nullptr);
  EXPECT_EQ(flash->kitchen_quant_params->params_config_key, "mixed");
  EXPECT_TRUE(flash->flash_attention_module->options().qfa_params->use_natural_transcendental_func);
  EXPECT_TRUE(at(*fa_model, path + ".flash_attention_module"));
  (void)gradients_of(*sdpa_model);
  (void)gradients_of(*fa_model);
}

// labels: model_resolution D27
TEST_F(ModelResolution, ALayerWithoutARuleNamesItsPath) {
  TransformerConfig config = dense_config();
  config.quant_recipe = recipe({{"fp8_cs", linear(2)}}, {{"only", rule("*layers.0.*", "fp8_cs")}});
  EXPECT_TRUE(throws<AssertionError>(
      [&] { (void)build(config); },
      {"KitchenLayerNormColumnParallelLinear", "(module decoder.layers.1.self_attention.linear_qkv)",
       "\"*\""}));
  config.quant_recipe = nullptr;
  EXPECT_TRUE(throws<AssertionError>([&] { (void)build(config); },
                                     {"(module decoder.layers.0.self_attention.linear_qkv)"}));
  config.quant_recipe = recipe({{"bad", linear(4711)}}, {{"all", rule("*", "bad")}});
  EXPECT_TRUE(throws<ValueError>([&] { (void)build(config); }, {"4711", "(module decoder.layers.0."}));
  config.quant_recipe = recipe({}, {{"all", rule("*", "absent")}});
  EXPECT_TRUE(throws<KeyError>([&] { (void)build(config); }, {"absent", "(module decoder.layers.0."}));
}

// labels: GPTModel sharded_state_dict
TEST_F(ModelResolution, CheckpointKeysShareALayerAxis) {
  const auto model = build(dense_config());
  const ShardedStateDict dict = model->sharded_state_dict();
  const std::string name = "decoder.layers.1.self_attention.linear_qkv.weight";
  const auto& qkv = std::get<ShardedTensor>(dict.at(name));
  EXPECT_EQ(qkv.key, "decoder.layers.self_attention.linear_qkv.weight");
  EXPECT_EQ(qkv.global_shape, (Shape{2, 36, 12}));
  EXPECT_EQ(qkv.global_offset, (Shape{1, 0, 0}));
  const auto& gamma =
      std::get<ShardedTensor>(dict.at("decoder.layers.0.mlp.linear_fc1.layer_norm_weight"));
  EXPECT_EQ(gamma.key, "decoder.layers.mlp.linear_fc1.layer_norm_weight");
  EXPECT_EQ(gamma.global_offset, (Shape{0, 0}));
  EXPECT_EQ(std::get<ShardedTensor>(dict.at("decoder.final_layernorm.weight")).global_shape, (Shape{12}));
  EXPECT_EQ(std::get<ShardedTensor>(dict.at("embedding.word_embeddings.weight")).global_shape,
            (Shape{16, 12}));
  EXPECT_TRUE(dict.contains("output_layer.weight"));
  for (const auto& [path, parameter] : model->named_parameters()) EXPECT_TRUE(dict.contains(path)) << path;
}

// labels: GPTModel MLP sharded_state_dict
TEST_F(ModelResolution, GateAndUpOfEachLayerHaveAPlaceOfTheirOwn) {
  const auto model = build(dense_config());
  const ShardedStateDict dict = model->sharded_state_dict();
  std::set<Shape> places;
  for (const std::string layer : {"0", "1"}) {
    const auto& factory =
        std::get<ShardedTensorFactory>(dict.at("decoder.layers." + layer + ".mlp.linear_fc1.weight"));
    EXPECT_EQ(factory.key, "decoder.layers.mlp.linear_fc1.weight");
    for (const ShardedTensor& shard : factory.build()) {
      EXPECT_EQ(shard.global_shape, (Shape{2, 96, 12}));
      places.insert(shard.global_offset);
    }
  }
  EXPECT_EQ(places, (std::set<Shape>{{0, 0, 0}, {0, 48, 0}, {1, 0, 0}, {1, 48, 0}}));
}

// labels: GPTModel autograd.recompute T13
TEST_F(ModelResolution, RecomputedAttentionGivesTheSameGradients) {
  TransformerConfig config = dense_config();
  config.attention_dropout = 0.1;
  config.hidden_dropout = 0.1;
  config.use_kitchen_attention = true;
  const auto model = build(config);
  const auto plain = gradients_of(*model);
  model->set_is_first_microbatch();
  model->config->recompute_granularity = "selective";
  const auto again = gradients_of(*model);
  ASSERT_EQ(plain.size(), again.size());
  for (std::size_t i = 0; i < plain.size(); ++i) {
    EXPECT_TRUE(same_bits(plain[i].second, again[i].second)) << plain[i].first;
  }
}

// labels: GPTModel set_is_first_microbatch
TEST_F(ModelResolution, TheModelTellsItsLayersOfTheFirstMicroBatch) {
  const auto model = build(dense_config());
  (void)gradients_of(*model);
  auto* fc1 = dynamic_cast<HasFirstMicrobatch*>(at(*model, "decoder.layers.0.mlp.linear_fc1").get());
  EXPECT_FALSE(fc1->is_first_microbatch);
  model->config->use_kitchen = false;
  model->set_is_first_microbatch();
  EXPECT_FALSE(fc1->is_first_microbatch);
  model->config->use_kitchen = true;
  model->set_is_first_microbatch();
  EXPECT_TRUE(fc1->is_first_microbatch);
}

// labels: training_smoke_test recipe_1 recipe_2 KitchenDotProductAttention KitchenFlashAttention
TEST_F(ModelResolution, PlainDescentLowersTheLoss) {
  for (const std::int64_t index : {1, 2}) {
    for (const char* backend : {"sdpa", "fa"}) {
      TransformerConfig config = dense_config();
      config.use_kitchen_attention = true;
      config.kitchen_attention_backend = backend;
      config.quant_recipe = recipe({{"all", linear(index)}}, {{"all", rule("*", "all")}});
      const auto model = build(config);
      const auto loss = [&] {
        const autograd::NoGradGuard guard;
        const Tensor losses =
            model->forward(ids({1, 5, 2, 7, 3, 0, 9, 4}), ids({0, 1, 2, 3, 4, 5, 6, 7}), {},
                           ids({5, 2, 7, 3, 0, 9, 4, 11}));
        return testing::values_of(autograd::sum(losses))[0];
      };
      const double before = loss();
      for (int step = 0; step < 10; ++step) {
        model->set_is_first_microbatch();
        const auto gradients = gradients_of(*model);
        std::size_t i = 0;
        for (const auto& [name, parameter] : model->named_parameters()) {
          ops::add_inplace(parameter->detach(), gradients[i++].second, -0.05f);
          parameter->bump_version();
        }
      }
      model->set_is_first_microbatch();
      EXPECT_LT(loss(), 0.8 * before) << index << " " << backend;
    }
  }
}

// labels: GPTModel
TEST_F(ModelResolution, BadSizesAndPositionTypesAreRefused) {
  const TransformerConfig config = dense_config();
  const KitchenSpecProvider provider(std::make_shared<FusedSpecProvider>());
  GPTModelOptions options;
  const auto attempt = [&] {
    GPTModel(make_config(config), gpt_block_submodules(provider, config), options);
  };
  EXPECT_TRUE(throws<ValueError>(attempt, {"vocab_size is 0"}));
  options.vocab_size = 16;
  options.max_sequence_length = 8;
  options.position_embedding_type = "alibi";
  EXPECT_TRUE(throws<ValueError>(attempt, {"alibi", "rope"}));
}

}  // namespace
}  // namespace kitchen
