#include "kitchen/config/transformer_config.h"

#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "support/expect_error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace kitchen {
namespace {

using testing::throws;

TransformerConfig small_config() {
  TransformerConfig config;
  config.num_layers = 2;
  config.hidden_size = 12;
  config.num_attention_heads = 4;
  return config;
}

/// Builds a small config with one change, and expects E with the phrases.
template <class E>
::testing::AssertionResult refused(const std::function<void(TransformerConfig&)>& change,
                                   const std::vector<std::string>& phrases) {
  TransformerConfig config = small_config();
  change(config);
  return throws<E>([&] { (void)make_config(config); }, phrases);
}

// labels: TransformerConfig
TEST(TransformerConfig, DerivesWhatIsNotSet) {
  const auto config = make_config(small_config());
  EXPECT_EQ(config->num_query_groups, 4);
  EXPECT_EQ(config->ffn_hidden_size, 48);
  EXPECT_EQ(config->kv_channels, 3);
  EXPECT_EQ(config->expert_tensor_parallel_size, 1);
  EXPECT_EQ(config->moe_ffn_hidden_size, std::nullopt);
  EXPECT_DOUBLE_EQ(config->output_layer_init_std(), 0.02 / 2.0);  // sqrt(2·2) = 2
  TransformerConfig given = small_config();
  given.kv_channels = 5;
  given.num_query_groups = 2;
  given.ffn_hidden_size = 7;
  given.num_moe_experts = 2;
  given.tensor_model_parallel_size = 2;
  given.add_bias_linear = false;
  const auto kept = make_config(given);
  EXPECT_EQ(kept->kv_channels, 5);
  EXPECT_EQ(kept->num_query_groups, 2);
  EXPECT_EQ(kept->moe_ffn_hidden_size, 7);
  EXPECT_EQ(kept->expert_tensor_parallel_size, 2);
}

// labels: TransformerConfig
TEST(TransformerConfig, HasMegatronsDefaults) {
  const TransformerConfig config;
  EXPECT_EQ(config.params_dtype, DType::float32);
  EXPECT_EQ(config.hidden_dropout, 0.1);
  EXPECT_EQ(config.attention_dropout, 0.1);
  EXPECT_EQ(config.layernorm_epsilon, 1e-5);
  EXPECT_EQ(config.kitchen_attention_backend, "sdpa");
  EXPECT_TRUE(config.add_bias_linear);
  EXPECT_TRUE(config.attention_softmax_in_fp32);
  EXPECT_TRUE(config.perform_initialization);
  EXPECT_FALSE(config.use_kitchen);
  EXPECT_EQ(config.quant_recipe, nullptr);
  EXPECT_EQ(config.activation_func, ActivationFunc::gelu);
  EXPECT_EQ(config.moe_token_dispatcher_type, "allgather");
  EXPECT_EQ(config.recompute_modules, (std::set<std::string>{"core_attn"}));
}

// labels: TransformerConfig
TEST(TransformerConfig, LayerScalingForcesFp32Softmax) {
  TransformerConfig config = small_config();
  config.apply_query_key_layer_scaling = true;
  config.attention_softmax_in_fp32 = false;
  EXPECT_TRUE(make_config(config)->attention_softmax_in_fp32);
}

// labels: P01 TransformerConfig
TEST(TransformerConfig, QueryGroupsAndTpListTheAllowedSizes) {
  EXPECT_TRUE(refused<ValueError>(
      [](TransformerConfig& c) {
        c.hidden_size = 96;
        c.num_attention_heads = 24;
        c.num_query_groups = 6;
        c.tensor_model_parallel_size = 4;
      },
      {"num_query_groups 6", "tensor_model_parallel_size 4", ": 1, 2, 3, 6, 12, 24"}));
  for (const std::int64_t tp : {1, 2, 3, 6, 12, 24}) {
    TransformerConfig config = small_config();
    config.hidden_size = 96;
    config.num_attention_heads = 24;
    config.num_query_groups = 6;
    config.tensor_model_parallel_size = tp;
    EXPECT_NO_THROW((void)make_config(config)) << tp;
  }
}

// labels: TransformerConfig P01
TEST(TransformerConfig, SizesThatDoNotFitNameBothNumbers) {
  EXPECT_TRUE(refused<ValueError>([](TransformerConfig& c) { c.tensor_model_parallel_size = 3; },
                                  {"num_attention_heads 4", "tensor_model_parallel_size 3"}));
  EXPECT_TRUE(refused<ValueError>([](TransformerConfig& c) { c.num_query_groups = 3; },
                                  {"num_attention_heads 4", "num_query_groups 3"}));
  EXPECT_TRUE(refused<ValueError>([](TransformerConfig& c) { c.hidden_size = 13; },
                                  {"hidden_size 13", "num_attention_heads 4"}));
  EXPECT_TRUE(
      refused<ValueError>([](TransformerConfig& c) { c.num_layers = 0; }, {"num_layers is 0"}));
  EXPECT_TRUE(refused<ValueError>([](TransformerConfig& c) { c.hidden_size = -1; }, {"-1"}));
  EXPECT_TRUE(
      refused<ValueError>([](TransformerConfig& c) { c.num_query_groups = 0; }, {"groups is 0"}));
  EXPECT_TRUE(
      refused<ValueError>([](TransformerConfig& c) { c.context_parallel_size = 0; }, {"is 0"}));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(refused<ValueError>([&](TransformerConfig& c) { c.hidden_dropout = nan; }, {"nan"}));
  EXPECT_TRUE(refused<ValueError>([](TransformerConfig& c) { c.attention_dropout = 1.0; },
                                  {"attention_dropout is 1"}));
  EXPECT_TRUE(
      refused<ValueError>([](TransformerConfig& c) { c.layernorm_epsilon = 0; }, {"epsilon"}));
}

// labels: ModelParallelConfig TransformerConfig
TEST(ModelParallelConfig, RefusesContradictions) {
  EXPECT_TRUE(refused<ValueError>([](TransformerConfig& c) { c.sequence_parallel = true; },
                                  {"sequence_parallel", "tensor_model_parallel_size is 1"}));
  EXPECT_TRUE(
      refused<ValueError>([](TransformerConfig& c) { c.fp16 = c.bf16 = true; }, {"fp16 and bf16"}));
  EXPECT_TRUE(throws<ValueError>(
      [] {
        ModelParallelConfig config;
        config.sequence_parallel = true;
        (void)make_config(config);
      },
      {"sequence_parallel"}));
}

// labels: ModelParallelConfig TransformerConfig
TEST(ModelParallelConfig, WarnsOfExpertsWithTpButWithoutSequenceParallelism) {
  ModelParallelConfig config;
  config.expert_model_parallel_size = 2;
  config.tensor_model_parallel_size = 2;
  LogCapture log;
  config.validate();
  EXPECT_EQ(log.count(LogLevel::warning, "sequence_parallel"), 1);
  config.sequence_parallel = true;
  config.validate();
  EXPECT_EQ(log.count(LogLevel::warning, "sequence_parallel"), 1);
}

// labels: TransformerConfig
TEST(TransformerConfig, ExpertsAreChecked) {
  EXPECT_TRUE(refused<ValueError>([](TransformerConfig& c) { c.expert_model_parallel_size = 2; },
                                  {"expert_model_parallel_size is 2", "num_moe_experts"}));
  EXPECT_TRUE(refused<ValueError>([](TransformerConfig& c) { c.num_moe_experts = 0; },
                                  {"num_moe_experts is 0"}));
  EXPECT_TRUE(refused<ValueError>([](TransformerConfig& c) { c.num_moe_experts = 1; },
                                  {"moe_router_topk is 2", "num_moe_experts is 1"}));
  EXPECT_TRUE(refused<AssertionError>(
      [](TransformerConfig& c) {
        c.num_moe_experts = 2;
        c.expert_tensor_parallel_size = 2;
      },
      {"Bias in Moe is only supported when ETP==1"}));
  EXPECT_TRUE(refused<ValueError>(
      [](TransformerConfig& c) {
        c.num_moe_experts = 2;
        c.moe_layer_freq = std::vector<std::int64_t>{1, 0, 1};
      },
      {"3 layers", "num_layers is 2"}));
}

// labels: TransformerConfig D39
TEST(TransformerConfig, AttentionBackendTextIsNotReadWhileKitchenAttentionIsOff) {
  TransformerConfig config = small_config();
  config.kitchen_attention_backend = "nonsense";
  EXPECT_NO_THROW((void)make_config(config));
}

// labels: AttnMaskType ActivationFunc
TEST(ConfigEnums, TextsRoundTripAndUnknownOnesAreRefused) {
  EXPECT_EQ(to_string(AttnMaskType::causal), "causal");
  EXPECT_EQ(from_string<AttnMaskType>("padding_causal"), AttnMaskType::padding_causal);
  EXPECT_EQ(from_string<ActivationFunc>(to_string(ActivationFunc::gelu_tanh)),
            ActivationFunc::gelu_tanh);
  EXPECT_TRUE(throws<ValueError>([] { (void)from_string<AttnMaskType>("Causal"); },
                                 {"AttnMaskType", "\"Causal\"", "did you mean \"causal\"?"}));
}

}  // namespace
}  // namespace kitchen
