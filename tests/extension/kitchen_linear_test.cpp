#include "kitchen/extension/kitchen_linear.h"

#include "kitchen/autograd/backward.h"
#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "support/compare.h"
#include "support/exact_product.h"
#include "support/expect_error.h"
#include "support/kitchen_layers.h"
#include "support/rank_test.h"

#include <gtest/gtest.h>

#include <functional>

namespace kitchen {
namespace {

using testing::close;
using testing::exact_product;
using testing::fake_group;
using testing::linear_args;
using testing::linear_recipe;
using testing::same_bits;
using testing::throws;
using testing::values_of;

class KitchenLinearTest : public testing::RankTest {
 protected:
  std::shared_ptr<TransformerConfig> config = make_config(testing::small_transformer());

  [[nodiscard]] LinearArgs args() const { return linear_args(config); }
  [[nodiscard]] std::shared_ptr<KitchenLinear> finished(const LinearArgs& a, std::int64_t in = 5,
                                                        std::int64_t out = 6,
                                                        std::int64_t recipe = 1) const {
    auto layer = std::make_shared<KitchenLinear>(in, out, a);
    layer->finish_init(linear_recipe(recipe, "decoder.linear"));
    return layer;
  }
};

// labels: KitchenLinear D7
TEST_F(KitchenLinearTest, ConstructorAllocatesNothing) {
  KitchenLinear layer(5, 6, args());
  EXPECT_FALSE(layer.init_finished);
  EXPECT_TRUE(layer.named_parameters().empty());
  EXPECT_EQ(layer.state_dict().size(), 0u);
  EXPECT_TRUE(layer.is_first_microbatch);
  EXPECT_FALSE(layer.kitchen_return_bias);
  EXPECT_FALSE(layer.kitchen_quant_params);
  EXPECT_EQ(layer.config, config);
}

// labels: KitchenLinear
TEST_F(KitchenLinearTest, EachMissingKeywordIsNamedBeforeAnythingElse) {
  const std::vector<std::pair<std::string, std::function<void(LinearArgs&)>>> cases = {
      {"parallel_mode",
       [](LinearArgs& a) { a.parallel_mode = Required<std::optional<std::string>>(); }},
      {"config",
       [](LinearArgs& a) { a.config = Required<std::shared_ptr<ModelParallelConfig>>(); }},
      {"init_method", [](LinearArgs& a) { a.init_method = Required<InitMethod>(); }},
      {"bias", [](LinearArgs& a) { a.bias = Required<bool>(); }},
      {"skip_bias_add", [](LinearArgs& a) { a.skip_bias_add = Required<bool>(); }},
      {"skip_weight_param_allocation",
       [](LinearArgs& a) { a.skip_weight_param_allocation = Required<bool>(); }}};
  for (const auto& [name, unset] : cases) {
    LinearArgs a = args();
    a.parallel_mode = std::optional<std::string>("diagonal");
    a.skip_weight_param_allocation = true;
    unset(a);
    EXPECT_TRUE(
        throws<TypeError>([&] { KitchenLinear(5, 6, a); },
                          {"KitchenLinear", "missing required keyword argument '" + name + "'"}));
  }
}

// labels: KitchenLinear D30
TEST_F(KitchenLinearTest, ConstructorRefusesByName) {
  LinearArgs a = args();
  a.skip_weight_param_allocation = true;
  EXPECT_TRUE(throws<ValueError>([&] { KitchenLinear(5, 6, a); }, {"skip_weight_param_allocation"}));
  EXPECT_TRUE(throws<ValueError>([&] { KitchenLinear(5, 6, linear_args(config, "diagonal")); },
                                 {"parallel_mode", "diagonal", "column"}));
  EXPECT_TRUE(throws<TypeError>([&] { KitchenLinear(5, 6, linear_args(nullptr)); }, {"config", "null"}));
  TransformerConfig delayed = testing::small_transformer();
  delayed.delay_wgrad_compute = true;
  EXPECT_TRUE(throws<NotImplementedError>(
      [&] { KitchenLinear(5, 6, linear_args(make_config(delayed))); }, {"delay_wgrad_compute"}));
}

// labels: KitchenLinear.finish_init
TEST_F(KitchenLinearTest, FinishInitAllocatesOnce) {
  KitchenLinear layer(5, 6, args());
  layer.finish_init(linear_recipe(2, "decoder.linear"));
  EXPECT_TRUE(layer.init_finished);
  EXPECT_EQ(layer.weight.shape(), (Shape{6, 5}));
  EXPECT_EQ(layer.bias.shape(), (Shape{6}));
  EXPECT_EQ(values_of(layer.bias.detach()), (std::vector<double>(6, 0.0)));
  EXPECT_EQ(layer.kitchen_quant_params->params_config_key, "test_config");
  EXPECT_EQ(layer.kitchen_quant_params->match_input.module_path, "decoder.linear");
  EXPECT_EQ(layer.kitchen_quant_params->qlinear_params->number, 2);
  EXPECT_EQ(layer.weight.shard()->logical_name, "decoder.linear.weight");
  EXPECT_TRUE(throws<AssertionError>([&] { layer.finish_init(linear_recipe(2)); },
                                     {"KitchenLinear", "finish_init already called"}));
}

// labels: KitchenLinear.finish_init D27
TEST_F(KitchenLinearTest, FinishInitWithoutALinearRecipeIsRefused) {
  KitchenLinear layer(5, 6, args());
  EXPECT_TRUE(throws<AssertionError>([&] { layer.finish_init(std::nullopt); },
                                     {"KitchenLinear", "expects a quantization config", "\"*\""}));
  EXPECT_TRUE(throws<AssertionError>(
      [&] { layer.finish_init(testing::flash_recipe("triton_fa_bf16_for_all_base_2", "a.path")); },
      {"KitchenLinear", "a.path", "qlinear_params"}));
  EXPECT_TRUE(throws<AssertionError>([&] { layer.finish_init(testing::attention_recipe(1, "a.path")); },
                                     {"qlinear_params"}));
  EXPECT_TRUE(throws<ValueError>([&] { layer.finish_init(linear_recipe(4711)); }, {"4711"}));
}

// labels: KitchenLinear.finish_init
TEST_F(KitchenLinearTest, ErrorsComeInTheDocumentedOrder) {
  TransformerConfig on_host = testing::small_transformer();
  on_host.use_cpu_initialization = true;
  LinearArgs a = linear_args(make_config(on_host));
  a.tp_group = fake_group(1, 0);  // wrong for a duplicated layer, and judged last
  KitchenLinear cpu(5, 6, a);
  EXPECT_TRUE(throws<ValueError>([&] { cpu.finish_init(std::nullopt); }, {"use_cpu_initialization"}));
  a.config = std::shared_ptr<ModelParallelConfig>(config);
  a.tp_comm_buffer_name = "order_test";
  KitchenLinear layer(5, 6, a);
  const LogCapture log;
  EXPECT_TRUE(throws<AssertionError>([&] { layer.finish_init(std::nullopt); }, {"expects a quant"}));
  EXPECT_TRUE(throws<AssertionError>([&] { layer.finish_init(testing::attention_recipe(1)); },
                                     {"qlinear_params"}));
  EXPECT_EQ(log.count(LogLevel::warning, "order_test"), 0);
  EXPECT_TRUE(throws<AssertionError>([&] { layer.finish_init(linear_recipe(1)); },
                                     {"duplicated linear should not have tp_group set"}));
  EXPECT_EQ(log.count(LogLevel::warning, "order_test"), 1);
}

// labels: KitchenLinear.finish_init
TEST_F(KitchenLinearTest, OtherModesNeedAGroup) {
  for (const char* mode : {"column", "row"}) {
    KitchenLinear layer(5, 6, linear_args(config, mode));
    EXPECT_TRUE(throws<AssertionError>([&] { layer.finish_init(linear_recipe(1)); },
                                       {"should always have tp_group set"}));
  }
  KitchenLinear layer(5, 6, linear_args(config, std::nullopt));
  EXPECT_TRUE(throws<AssertionError>([&] { layer.finish_init(linear_recipe(1)); },
                                     {"should always have tp_group set"}));
}

// labels: KitchenLinear.finish_init
TEST_F(KitchenLinearTest, AFailedFinishInitCanBeRepeated) {
  bool fails = true;
  LinearArgs a = args();
  a.init_method = InitMethod([&](Tensor& w) {
    if (fails) throw ValueError("init refused");
    init_method_constant(3.0f)(w);
  });
  KitchenLinear layer(5, 6, a);
  EXPECT_TRUE(throws<ValueError>([&] { layer.finish_init(linear_recipe(1)); }, {"init refused"}));
  EXPECT_TRUE(throws<ValueError>([&] { layer.finish_init(linear_recipe(4711)); }, {"4711"}));
  EXPECT_FALSE(layer.init_finished);
  EXPECT_FALSE(layer.kitchen_quant_params);
  EXPECT_TRUE(layer.named_parameters().empty());
  EXPECT_TRUE(throws<AssertionError>([&] { (void)layer.forward(tensor({1, 5}, 1)); }, {"finish_init"}));
  fails = false;
  layer.finish_init(linear_recipe(1));
  EXPECT_EQ(values_of(layer.weight.detach()), (std::vector<double>(30, 3.0)));
}

// labels: KitchenLinear.finish_init D5
TEST_F(KitchenLinearTest, ABufferNameIsWarnedOfOnceAndTheConfigStays) {
  TransformerConfig overlapping = testing::small_transformer();
  overlapping.tp_comm_overlap = true;
  const auto shared = make_config(overlapping);
  LinearArgs a = linear_args(shared);
  a.tp_comm_buffer_name = "qkv";
  const LogCapture log;
  const auto first = finished(a);
  const auto second = finished(a);
  a.tp_comm_buffer_name = "";
  (void)finished(a);
  EXPECT_EQ(log.count(LogLevel::warning, "not supported in Kitchen"), 1);
  EXPECT_EQ(log.count(LogLevel::warning, "'qkv'"), 1);
  EXPECT_EQ(first->ub_name, "qkv");
  EXPECT_TRUE(shared->tp_comm_overlap);
}

// labels: KitchenLinear.finish_init
TEST_F(KitchenLinearTest, WithoutInitialisationWeightsAreZero) {
  TransformerConfig bare = testing::small_transformer();
  bare.perform_initialization = false;
  const auto layer = finished(linear_args(make_config(bare)));
  EXPECT_EQ(values_of(layer->weight.detach()), (std::vector<double>(30, 0.0)));
}

// labels: KitchenLinear.finish_init RngTracker D38
TEST_F(KitchenLinearTest, TheTrackersStateFollowsTheKindOfLayer) {
  std::uint64_t seed = 0;
  const auto seed_of = [&](const std::optional<std::string>& mode, bool is_expert) {
    LinearArgs a = linear_args(config, mode);
    if (mode != "duplicated") a.tp_group = fake_group(1, 0);
    a.is_expert = is_expert;
    a.init_method = InitMethod([&](Tensor&) { seed = next_rng().seed; });
    (void)finished(a);
    return seed - 1234;
  };
  EXPECT_EQ(seed_of("duplicated", false), 0u);  // data-parallel-rng: equal on all TP ranks
  EXPECT_EQ(seed_of("column", false), 2718u);
  EXPECT_EQ(seed_of("row", false), 2718u);
  EXPECT_EQ(seed_of(std::nullopt, false), 2718u);
  EXPECT_EQ(seed_of("column", true), 1024u);
  EXPECT_EQ(seed_of("duplicated", true), 1024u);
}

// labels: KitchenLinear.finish_init _get_extra_kitchen_kwargs
TEST_F(KitchenLinearTest, AMetaLayerIsMaterialisedByReset) {
  TransformerConfig meta = testing::bf16_transformer();
  meta.init_model_with_meta_device = true;
  meta.sequence_parallel = true;
  meta.tensor_model_parallel_size = 2;
  const auto layer = finished(linear_args(make_config(meta)));
  EXPECT_TRUE(layer->weight.context()->is_meta());
  EXPECT_EQ(layer->weight.dtype(), DType::bfloat16);
  layer->reset_parameters();
  EXPECT_TRUE(layer->weight.sequence_parallel) << "attributes outlive the reset";
  const auto direct = finished(linear_args(make_config(testing::bf16_transformer())));
  EXPECT_TRUE(same_bits(direct->weight.detach(), layer->weight.detach()));
}

struct Attributes {
  bool allreduce, sequence_parallel, tensor_model_parallel;
  int partition_dim;
};

void expect_attributes(const Parameter& parameter, const Attributes& wanted) {
  EXPECT_EQ(parameter.allreduce, wanted.allreduce);
  EXPECT_EQ(parameter.sequence_parallel, wanted.sequence_parallel);
  EXPECT_EQ(parameter.tensor_model_parallel, wanted.tensor_model_parallel);
  EXPECT_EQ(parameter.partition_dim, wanted.partition_dim);
}

// labels: KitchenLinear.finish_init parameter_attributes D18
TEST_F(KitchenLinearTest, ParameterAttributesFollowTheTable) {
  TransformerConfig parallel = testing::small_transformer();
  parallel.tensor_model_parallel_size = 2;
  parallel.sequence_parallel = true;
  parallel.expert_model_parallel_size = 2;
  parallel.num_moe_experts = 2;
  parallel.add_bias_linear = false;
  const auto shared = make_config(parallel);
  const auto build = [&](const std::optional<std::string>& mode, bool is_expert, bool bias = true) {
    LinearArgs a = linear_args(shared, mode);
    if (mode != "duplicated") a.tp_group = fake_group(2, 1);
    a.is_expert = is_expert;
    a.bias = bias;
    return finished(a, 4, 6);
  };
  const auto column = build("column", false);
  expect_attributes(column->weight, {true, false, true, 0});
  expect_attributes(column->bias, {true, false, true, 0});
  const auto row = build("row", false);
  expect_attributes(row->weight, {true, false, true, 1});
  expect_attributes(row->bias, {true, true, false, -1});
  const auto duplicated = build("duplicated", false);
  expect_attributes(duplicated->weight, {true, true, false, -1});
  expect_attributes(duplicated->bias, {true, true, false, -1});
  const auto expert_column = build("column", true);
  expect_attributes(expert_column->weight, {false, false, true, 0});
  expect_attributes(expert_column->bias, {false, false, true, 0});
  expect_attributes(build("row", true, false)->weight, {false, false, true, 1});
  expect_attributes(build("duplicated", true)->weight, {false, false, false, -1});
  EXPECT_TRUE(expert_column->expert_parallel);
}

// labels: KitchenLinear.finish_init explicit_expert_comm
TEST_F(KitchenLinearTest, AnExpertDividesItsSizesAndCommunicatesNothing) {
  LinearArgs a = linear_args(config, "column");
  a.is_expert = true;
  a.tp_group = fake_group(2, 1);
  const auto column = finished(a, 4, 6);
  EXPECT_EQ(column->weight.shape(), (Shape{3, 4}));
  EXPECT_EQ(column->tp_size, 1);
  EXPECT_FALSE(column->parallel_mode);
  EXPECT_EQ(column->forward(tensor({2, 4}, 1)).first.shape(), (Shape{2, 3}));
  // The shard starts from its rows of the whole weight.
  const auto whole = finished(linear_args(config), 4, 6);
  EXPECT_TRUE(same_bits(whole->weight.detach().slice(0, 3, 3), column->weight.detach()));
  a.parallel_mode = std::optional<std::string>("row");
  KitchenLinear with_bias(4, 6, a);
  EXPECT_TRUE(throws<ValueError>([&] { with_bias.finish_init(linear_recipe(1)); }, {"bias"}));
  a.bias = false;
  EXPECT_EQ(finished(a, 4, 6)->weight.shape(), (Shape{6, 2}));
  KitchenLinear odd(5, 6, a);
  EXPECT_TRUE(throws<AssertionError>([&] { odd.finish_init(linear_recipe(1)); },
                                     {"5 is not divisible by 2"}));
}

// labels: KitchenLinear
TEST_F(KitchenLinearTest, ModeNoneKeepsFullSizesAndRunsAlone) {
  LinearArgs a = linear_args(config, std::nullopt);
  a.tp_group = fake_group(2, 1);
  const auto layer = finished(a, 4, 6);
  EXPECT_EQ(layer->weight.shape(), (Shape{6, 4}));
  EXPECT_EQ(layer->tp_size, 2);
  EXPECT_EQ(layer->forward(tensor({2, 4}, 1)).first.shape(), (Shape{2, 6}));
}

// labels: KitchenLinear.forward
TEST_F(KitchenLinearTest, ForwardBeforeFinishInitIsRefused) {
  KitchenLinear layer(5, 6, args());
  EXPECT_TRUE(throws<AssertionError>([&] { (void)layer.forward(tensor({1, 5}, 1)); },
                                     {"KitchenLinear", "finish_init"}));
  EXPECT_TRUE(throws<AssertionError>([&] { (void)layer.sharded_state_dict(); },
                                     {"KitchenLinear", "finish_init"}));
}

// labels: KitchenLinear.forward
TEST_F(KitchenLinearTest, BiasAndSkipDecideTheReturnedPair) {
  for (const bool bias : {false, true}) {
    for (const bool skip : {false, true}) {
      LinearArgs a = args();
      a.bias = bias;
      a.skip_bias_add = skip;
      const auto layer = finished(a);
      EXPECT_EQ(layer->kitchen_return_bias, bias && skip);
      EXPECT_EQ(layer->bias.defined(), bias);
      if (bias) layer->bias.set_data(tensor({6}, 9));
      const Tensor x = tensor({4, 5}, 1);
      const auto [y, second] = layer->forward(x);
      ASSERT_EQ(second.has_value(), bias && skip);
      if (second) {
        EXPECT_EQ(second->id(), layer->bias.id()) << "the parameter itself";
      }
      const auto product = exact_product(values_of(x), values_of(layer->weight.detach()), 4, 6, 5);
      std::vector<double> expected = product.values;
      const auto b = values_of(tensor({6}, 9));
      for (std::size_t i = 0; bias && !skip && i < expected.size(); ++i) expected[i] += b[i % 6];
      EXPECT_TRUE(close(expected, values_of(y.detach()), 9 * 0x1p-24 * (product.largest_sum + 1), 0.0));
    }
  }
}

// labels: KitchenLinear.forward G15
TEST_F(KitchenLinearTest, LeadingDimensionsAreKeptAndMayBeEmpty) {
  for (const std::int64_t recipe : {1, 2, 6001}) {
    const auto layer = finished(args(), 64, 32, recipe);
    EXPECT_EQ(layer->forward(tensor({64}, 1)).first.shape(), (Shape{32}));
    EXPECT_EQ(layer->forward(tensor({2, 3, 2, 64}, 1)).first.shape(), (Shape{2, 3, 2, 32}));
    const Tensor x = leaf({0, 64}, 1);
    autograd::zero_grad(layer->weight);
    const Tensor y = layer->forward(x).first;
    EXPECT_EQ(y.shape(), (Shape{0, 32}));
    autograd::backward(y, tensor({0, 32}, 2));
    EXPECT_EQ(values_of(layer->weight.grad()), (std::vector<double>(32 * 64, 0.0)));
    EXPECT_EQ(values_of(layer->bias.grad()), (std::vector<double>(32, 0.0)));
    EXPECT_EQ(autograd::grad_of(x).shape(), (Shape{0, 64}));
    EXPECT_TRUE(throws<ValueError>([&] { (void)layer->forward(tensor({2, 63}, 1)); }, {"63", "64"}));
  }
}

// labels: KitchenLinear.forward set_is_first_microbatch
TEST_F(KitchenLinearTest, AForwardThatFailsLeavesTheFirstMicroBatchFlag) {
  const auto layer = finished(args(), 5, 6, 2);
  EXPECT_TRUE(throws<ValueError>([&] { (void)layer->forward(tensor({2, 4}, 1)); }, {"4", "5"}));
  EXPECT_TRUE(layer->is_first_microbatch);
  (void)layer->forward(tensor({2, 5}, 1));
  EXPECT_FALSE(layer->is_first_microbatch);
}

// labels: KitchenLinear.sharded_state_dict
TEST_F(KitchenLinearTest, DuplicatedShardsAreReplicas) {
  const auto layer = finished(args());
  Metadata metadata;
  metadata.dp_cp_group = fake_group(4, 3);
  const ShardedStateDict dict = layer->sharded_state_dict("p.", {{0, 1, 2}}, &metadata);
  ASSERT_EQ(dict.items().size(), 3u);
  for (const char* name : {"p.weight", "p.bias"}) {
    const auto& shard = std::get<ShardedTensor>(dict.at(name));
    EXPECT_EQ(shard.key, name);
    EXPECT_EQ(shard.replica_id, (ReplicaId{0, 0, 3}));
    EXPECT_EQ(shard.global_shape[0], 2);
    EXPECT_EQ(shard.global_offset[0], 1);
  }
  EXPECT_EQ(std::get<ShardedObject>(dict.at("p._extra_state")).replica_id, (ReplicaId{0, 0, 3}));
  const Metadata empty;
  EXPECT_NO_THROW((void)layer->sharded_state_dict("", {}, &empty));
  LinearArgs a = linear_args(config, "column");
  a.tp_group = fake_group(1, 0);
  const auto column = finished(a);
  EXPECT_TRUE(throws<AssertionError>([&] { (void)column->sharded_state_dict(); },
                                     {"duplicated parallel mode", "column"}));
}

// labels: KitchenLinear K20
TEST_F(KitchenLinearTest, StateHoldsAnEmptyExtraState) {
  const auto layer = finished(args());
  const StateDict state = layer->state_dict();
  EXPECT_EQ(state.size(), 3u);
  EXPECT_EQ(state.at("_extra_state").dtype(), DType::uint8);
  EXPECT_EQ(state.at("_extra_state").numel(), 0);
}

// labels: KitchenLinear build_module
TEST_F(KitchenLinearTest, CanBeBuiltFromASpec) {
  const BuildArgs call({std::int64_t{5}, std::int64_t{6}},
                       {{"parallel_mode", std::optional<std::string>("duplicated")},
                        {"config", config},
                        {"init_method", init_method_normal(1.0)},
                        {"bias", false},
                        {"skip_bias_add", false},
                        {"skip_weight_param_allocation", false}});
  EXPECT_TRUE(build_module_as<KitchenLinear>(module_type<KitchenLinear>(), call));
  BuildArgs unknown = call;
  unknown.set("stride", std::int64_t{2});
  EXPECT_TRUE(throws<TypeError>([&] { (void)build_module(module_type<KitchenLinear>(), unknown); },
                                {"unexpected keyword argument 'stride'", "instantiating KitchenLinear"}));
}

}  // namespace
}  // namespace kitchen
