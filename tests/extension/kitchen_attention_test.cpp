#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/modules/packed_seq_params.h"
#include "support/compare.h"
#include "support/expect_error.h"
#include "support/kitchen_attention.h"
#include "support/rank_test.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace kitchen {
namespace {

using testing::CoreSettings;
using testing::make_core;
using testing::throws;

using Groups = std::shared_ptr<const ProcessGroupCollection>;

/// The contract that both classes share, checked on each.
template <class T>
class KitchenAttention : public testing::RankTest {
 protected:
  const char* name = std::is_same_v<T, KitchenFlashAttention> ? "KitchenFlashAttention"
                                                              : "KitchenDotProductAttention";

  std::shared_ptr<T> build(const std::shared_ptr<TransformerConfig>& config, const Groups& groups,
                           std::int64_t layer_number = 1, std::optional<double> scale = {}) {
    return std::make_shared<T>(config, layer_number, AttnMaskType::causal, "self", std::nullopt, scale,
                               std::nullopt, groups);
  }

  void expect_refusals_in_order() {
    TransformerConfig bad = testing::small_transformer();
    const auto config = make_config(bad);
    config->context_parallel_size = 2;
    config->window_size = {4, 0};
    config->kv_channels.reset();
    config->softmax_type = "learnable";
    const auto no_tp = std::make_shared<ProcessGroupCollection>();
    Groups groups;
    const auto attempt = [&] { (void)build(config, groups); };
    EXPECT_TRUE(throws<AssertionError>(attempt, {name, "Context parallelism is not supported"}));
    config->context_parallel_size = 1;
    EXPECT_TRUE(throws<AssertionError>(attempt, {name, "Sliding Window Attention is not supported"}));
    config->window_size.reset();
    EXPECT_TRUE(throws<AssertionError>(attempt, {name, "kv_channels must be set"}));
    config->kv_channels = 3;
    EXPECT_TRUE(throws<ValueError>(attempt, {name, "without ProcessGroupCollection"}));
    groups = no_tp;
    EXPECT_TRUE(throws<AssertionError>(attempt, {name, "must have tp process group"}));
    const auto split = std::make_shared<ProcessGroupCollection>();
    split->tp = testing::fake_group(8, 0);
    groups = split;
    EXPECT_TRUE(throws<AssertionError>(attempt, {"12 is not divisible by 8"}));
    groups = ProcessGroupCollection::use_mpu_process_groups();
    EXPECT_TRUE(throws<NotImplementedError>(attempt, {name, "softmax_type", "learnable"}));
    config->softmax_type = "vanilla";
    config->multi_latent_attention = true;
    EXPECT_TRUE(throws<NotImplementedError>(attempt, {name, "multi_latent_attention"}));
    EXPECT_TRUE(throws<TypeError>([&] { (void)build(nullptr, groups); }, {name, "config"}));
  }

  void expect_derived_sizes() {
    TransformerConfig c = testing::small_transformer();
    c.num_query_groups = 2;
    c.kv_channels = 5;
    c.attention_dropout = 0.25;
    const auto split = std::make_shared<ProcessGroupCollection>();
    split->tp = testing::fake_group(2, 1);
    const auto core = build(make_config(c), split, 0);
    EXPECT_EQ(core->geometry.layer_number, 1);
    EXPECT_EQ(core->geometry.hidden_size_per_partition, 10);
    EXPECT_EQ(core->geometry.hidden_size_per_attention_head, 5);
    EXPECT_EQ(core->geometry.num_attention_heads_per_partition, 2);
    EXPECT_EQ(core->geometry.num_query_groups_per_partition, 1);
    EXPECT_DOUBLE_EQ(core->geometry.softmax_scale, 1.0 / std::sqrt(5.0));
    EXPECT_EQ(core->geometry.coeff, std::nullopt);
    EXPECT_EQ(core->geometry.attention_dropout, 0.25);
    c.num_query_groups = 4;
    c.apply_query_key_layer_scaling = true;
    const auto scaled = build(make_config(c), split, 4, 0.5);
    EXPECT_EQ(scaled->geometry.softmax_scale, 0.125);
    EXPECT_EQ(scaled->geometry.coeff, 4.0);
    EXPECT_TRUE(scaled->named_parameters().empty());
  }

  void expect_forward_refusals() {
    const CoreSettings settings;
    const Tensor x = tensor({3, 1, 2, 8}, 1);
    const auto fresh = build(testing::core_config(settings), ProcessGroupCollection::use_mpu_process_groups());
    EXPECT_TRUE(throws<AssertionError>([&] { (void)fresh->forward(x, x, x, {}); },
                                       {name, "Must call finish_init before forward"}));
    EXPECT_TRUE(throws<AssertionError>([&] { fresh->finish_init(std::nullopt); },
                                       {name, "expects a quantization config", "\"*\""}));
    EXPECT_FALSE(fresh->init_finished);
    fresh->finish_init(testing::linear_recipe(2, "layers.0.core"));
    const PackedSeqParams packed;
    EXPECT_TRUE(throws<AssertionError>([&] { (void)fresh->forward(x, x, x, {}, {}, {}, &packed); },
                                       {name, "Packed sequence is not supported"}));
    EXPECT_TRUE(throws<AssertionError>([&] { (void)fresh->forward(x, x, x, {}, {}, x); },
                                       {name, "Attention bias is not supported"}));
    const Tensor flat = tensor({3, 1, 16}, 1);
    EXPECT_TRUE(throws<ValueError>([&] { (void)fresh->forward(flat, x, x, {}); },
                                   {name, "query", "[3, 1, 16]"}));
    EXPECT_TRUE(throws<ValueError>([&] { (void)fresh->forward(x, tensor({3, 1, 3, 8}, 1), x, {}); },
                                   {name, "key", "[3, 1, 3, 8]"}));
    EXPECT_TRUE(throws<ValueError>([&] { (void)fresh->forward(x, x, tensor({3, 1, 2, 7}, 1), {}); },
                                   {name, "value"}));
    const Tensor longer = tensor({4, 1, 2, 8}, 1);
    EXPECT_TRUE(throws<AssertionError>([&] { (void)fresh->forward(x, longer, longer, {}); },
                                       {"causal mask is only for self attention"}));
  }

  void expect_null_part_accepted(const QuantizationConfig& second, const char* wanted) {
    const CoreSettings settings;
    const LogCapture log;
    const auto core = make_core<T>(settings, testing::linear_recipe(2, "layers.0.core"));
    EXPECT_TRUE(core->init_finished);
    EXPECT_EQ(log.count(LogLevel::info, wanted), 1);
    EXPECT_EQ(log.count(LogLevel::info, "layers.0.core"), 1);
    EXPECT_EQ(core->kitchen_quant_params->params_config_key, "test_config");
    core->finish_init(second);  // a second call replaces the parameters
    EXPECT_EQ(core->kitchen_quant_params->match_input.module_path, "core");
    EXPECT_EQ(log.count(LogLevel::info, wanted), 1);
    EXPECT_TRUE(core->state_dict().items().empty());
  }
};

using Sdpa = KitchenAttention<KitchenDotProductAttention>;
using Flash = KitchenAttention<KitchenFlashAttention>;

// labels: KitchenDotProductAttention D11 D21 D26
TEST_F(Sdpa, ConstructorRefusesInOrder) { expect_refusals_in_order(); }
// labels: KitchenFlashAttention D11 D21 D26
TEST_F(Flash, ConstructorRefusesInOrder) { expect_refusals_in_order(); }
// labels: KitchenDotProductAttention A27
TEST_F(Sdpa, DerivesLocalSizesAndScale) { expect_derived_sizes(); }
// labels: KitchenFlashAttention A27
TEST_F(Flash, DerivesLocalSizesAndScale) { expect_derived_sizes(); }
// labels: KitchenDotProductAttention.forward
TEST_F(Sdpa, ForwardRefusesByName) { expect_forward_refusals(); }
// labels: KitchenFlashAttention.forward
TEST_F(Flash, ForwardRefusesByName) { expect_forward_refusals(); }

// labels: KitchenDotProductAttention.finish_init D14
TEST_F(Sdpa, ANullAttentionPartIsUnquantized) {
  expect_null_part_accepted(testing::attention_recipe(6001), "no attention part");
  const auto core = make_core<KitchenDotProductAttention>({}, testing::attention_recipe(6001));
  EXPECT_EQ(core->qattention_params->number, 6001);
  core->finish_init(testing::linear_recipe(2));
  EXPECT_FALSE(core->qattention_params);
}

// labels: KitchenFlashAttention.finish_init D14 D23
TEST_F(Flash, ANullFlashPartIsTheDefaultRecipe) {
  expect_null_part_accepted(testing::flash_recipe("triton_fa_bf16_for_all_natural"),
                            "no flash attention part");
  CoreSettings settings;
  settings.heads = 4;
  const auto core =
      make_core<KitchenFlashAttention>(settings, testing::flash_recipe("triton_fa_bf16_for_all_natural"));
  ASSERT_EQ(core->named_modules().size(), 2u);
  EXPECT_EQ(core->named_modules()[1].first, "flash_attention_module");
  const modules::FlashAttentionModuleOptions& options = core->flash_attention_module->options();
  EXPECT_TRUE(options.qfa_params->use_natural_transcendental_func);
  EXPECT_EQ(options.num_attention_heads, 4);
  EXPECT_EQ(options.num_query_groups, 2);
  EXPECT_EQ(options.kv_channels, 8);
  EXPECT_EQ(options.qkv_format, "sbhd");
  EXPECT_EQ(options.attn_mask_type, "causal");
  EXPECT_EQ(options.attention_type, "self");
  core->finish_init(testing::linear_recipe(2));
  EXPECT_FALSE(core->flash_attention_module->options().qfa_params->use_natural_transcendental_func);
  EXPECT_EQ(core->named_modules().size(), 2u) << "the child is replaced, not added";
}

// labels: KitchenDotProductAttention.finish_init KitchenFlashAttention.finish_init
TEST_F(Sdpa, HostInitialisationIsRefusedAtFinishInit) {
  TransformerConfig host = testing::small_transformer();
  host.use_cpu_initialization = true;
  const auto groups = ProcessGroupCollection::use_mpu_process_groups();
  KitchenDotProductAttention sdpa(make_config(host), 1, AttnMaskType::causal, "self", 0.0, {}, {}, groups);
  EXPECT_TRUE(throws<ValueError>([&] { sdpa.finish_init({}); }, {"use_cpu_initialization"}));
  KitchenFlashAttention flash(make_config(host), 1, AttnMaskType::causal, "self", 0.0, {}, {}, groups);
  EXPECT_TRUE(throws<ValueError>([&] { flash.finish_init({}); }, {"use_cpu_initialization"}));
}

// labels: KitchenFlashAttention.finish_init D25
TEST_F(Flash, FinishInitRefusesWhatTheKernelLacks) {
  const auto config = testing::core_config({});
  const auto groups = ProcessGroupCollection::use_mpu_process_groups();
  const auto recipe = testing::flash_recipe("triton_fa_bf16_for_all_base_2");
  const auto finish = [&](double dropout, const char* type) {
    KitchenFlashAttention core(config, 1, AttnMaskType::causal, type, dropout, {}, {}, groups);
    core.finish_init(recipe);
  };
  EXPECT_TRUE(throws<NotImplementedError>([&] { finish(0.1, "self"); },
                                          {"KitchenFlashAttention", "attention_dropout", "0.1"}));
  EXPECT_TRUE(throws<NotImplementedError>([&] { finish(0.0, "cross"); }, {"cross"}));
  EXPECT_TRUE(throws<ValueError>([&] { finish(0.0, "sideways"); }, {"sideways", "'self'"}));
  const auto keep = make_core<KitchenFlashAttention>({}, recipe);
  const auto fp8 = testing::flash_recipe("fa_fp8_e4m3_base_2", "other");
  keep->geometry.attention_dropout = 0.25;
  EXPECT_TRUE(throws<NotImplementedError>([&] { keep->finish_init(fp8); }, {"attention_dropout"}));
  EXPECT_EQ(keep->kitchen_quant_params->match_input.module_path, "core") << "nothing changed";
  keep->geometry.attention_dropout = 0.0;
  keep->finish_init(fp8);
  EXPECT_EQ(keep->flash_attention_module->options().module, "other");
}

// labels: KitchenFlashAttention.forward D24
TEST_F(Flash, OnlyACausalMaskIsAcceptedFromEitherSource) {
  const auto recipe = testing::flash_recipe("triton_fa_bf16_for_all_base_2");
  const Tensor x = tensor({3, 1, 2, 8}, 1);
  const auto causal = make_core<KitchenFlashAttention>({}, recipe);
  EXPECT_TRUE(causal->is_first_microbatch);
  EXPECT_TRUE(throws<AssertionError>([&] { (void)causal->forward(x, x, x, {}, AttnMaskType::padding); },
                                     {"Only causal mask is supported", "padding"}));
  EXPECT_TRUE(causal->is_first_microbatch);
  CoreSettings padded;
  padded.mask_type = AttnMaskType::padding;
  const auto padding = make_core<KitchenFlashAttention>(padded, recipe);
  EXPECT_TRUE(throws<AssertionError>([&] { (void)padding->forward(x, x, x, {}); },
                                     {"Only causal mask is supported", "padding"}));
  const Tensor forced = padding->forward(x, x, x, {}, AttnMaskType::causal);
  const Tensor mask = Tensor::zeros(context, {1, 1, 3, 3}, DType::boolean);
  EXPECT_TRUE(testing::same_bits(causal->forward(x, x, x, mask), forced)) << "the tensor is ignored";
  EXPECT_FALSE(causal->is_first_microbatch);
}

// labels: KitchenDotProductAttention
TEST_F(Sdpa, LayerScalingNeedsSoftmaxInFloat32) {
  const auto groups = ProcessGroupCollection::use_mpu_process_groups();
  CoreSettings settings;
  settings.layer_scaling = true;
  const auto config = testing::core_config(settings);
  EXPECT_TRUE(config->attention_softmax_in_fp32);
  EXPECT_EQ(build(config, groups, 3)->scale_mask_softmax->scale, 3.0);
  config->attention_softmax_in_fp32 = false;
  EXPECT_TRUE(throws<AssertionError>([&] { (void)build(config, groups, 3); }, {"fp32"}));
  config->attention_softmax_in_fp32 = true;
  config->fp16 = config->bf16 = true;
  EXPECT_TRUE(throws<AssertionError>([&] { (void)build(config, groups); }, {"fp16", "bf16"}));
}

// labels: KitchenDotProductAttention KitchenFlashAttention build_module
TEST_F(Flash, SpecsPassAllEightNames) {
  const BuildArgs call({}, {{"config", testing::core_config({})},
                            {"layer_number", std::int64_t{3}},
                            {"attn_mask_type", AttnMaskType::causal},
                            {"attention_type", std::string("self")},
                            {"attention_dropout", std::optional<double>(0.0)},
                            {"softmax_scale", std::optional<double>(0.25)},
                            {"cp_comm_type", std::optional<std::string>("p2p")},
                            {"pg_collection", ProcessGroupCollection::use_mpu_process_groups()}});
  const auto flash = build_module_as<KitchenFlashAttention>(module_type<KitchenFlashAttention>(), call);
  EXPECT_EQ(flash->geometry.softmax_scale, 0.25);
  EXPECT_EQ(flash->geometry.layer_number, 3);
  EXPECT_TRUE(build_module_as<KitchenDotProductAttention>(module_type<KitchenDotProductAttention>(), call));
  BuildArgs unknown = call;
  unknown.set("k_channels", std::int64_t{8});
  EXPECT_TRUE(throws<TypeError>([&] { (void)build_module(module_type<KitchenFlashAttention>(), unknown); },
                                {"unexpected keyword argument 'k_channels'", "KitchenFlashAttention"}));
}

// labels: KitchenFlashAttention.forward disable_parameter_transpose_cache D28
TEST_F(Flash, TheMicroBatchFlagFallsWhateverTheCacheFlagSays) {
  for (const bool disabled : {false, true}) {
    TransformerConfig config = testing::small_transformer();
    config.attention_dropout = 0.0;
    config.disable_parameter_transpose_cache = disabled;
    const auto core = build(make_config(config), ProcessGroupCollection::use_mpu_process_groups());
    core->finish_init(testing::flash_recipe("triton_fa_bf16_for_all_base_2", "a.path"));
    EXPECT_TRUE(core->is_first_microbatch);
    const Tensor q = tensor({3, 1, 4, 3}, 1, DType::bfloat16);
    (void)core->forward(q, q, q, std::nullopt);
    EXPECT_FALSE(core->is_first_microbatch);
  }
}

// labels: KitchenDotProductAttention.finish_init _get_extra_kitchen_kwargs D33
TEST_F(Sdpa, DeviceAndDtypeOfParametersDoNotTouchALayerWithoutParameters) {
  TransformerConfig config = testing::small_transformer();
  config.init_model_with_meta_device = true;
  config.attention_dropout = 0.0;
  config.params_dtype = DType::bfloat16;
  const auto core = build(make_config(config), ProcessGroupCollection::use_mpu_process_groups());
  core->finish_init(testing::attention_recipe(1, "a.path"));
  EXPECT_TRUE(core->named_parameters().empty());
  const Tensor q = tensor({3, 1, 4, 3}, 1);
  const Tensor out = core->forward(q, q, q, std::nullopt);
  EXPECT_EQ(out.dtype(), DType::float32);
  EXPECT_EQ(out.context(), q.context());
}

}  // namespace
}  // namespace kitchen
