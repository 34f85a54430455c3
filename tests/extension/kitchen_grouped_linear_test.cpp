#include "kitchen/extension/kitchen_grouped_linear.h"

#include "kitchen/base/error.h"
#include "support/compare.h"
#include "support/expect_error.h"
#include "support/kitchen_layers.h"
#include "support/rank_test.h"

#include <gtest/gtest.h>

#include <functional>

namespace kitchen {
namespace {

using testing::expert_args;
using testing::fake_group;
using testing::grouped_args;
using testing::linear_recipe;
using testing::named_linear_recipe;
using testing::same_bits;
using testing::throws;
using testing::values_of;

class KitchenGroupedLinearTest : public testing::RankTest {
 protected:
  std::shared_ptr<TransformerConfig> config = make_config(testing::small_transformer());

  [[nodiscard]] std::shared_ptr<KitchenGroupedLinear> finished(const GroupedLinearArgs& a,
                                                               std::int64_t experts = 2,
                                                               std::int64_t in = 4,
                                                               std::int64_t out = 6,
                                                               std::int64_t recipe = 1) const {
    auto layer = std::make_shared<KitchenGroupedLinear>(experts, in, out, a);
    layer->finish_init(linear_recipe(recipe, "mlp.experts.linear_fc1"));
    return layer;
  }
};

// labels: KitchenGroupedLinear
TEST_F(KitchenGroupedLinearTest, ConstructorAllocatesNothing) {
  const KitchenGroupedLinear layer(3, 4, 6, grouped_args(config));
  EXPECT_FALSE(layer.init_finished);
  EXPECT_TRUE(layer.named_parameters().empty());
  EXPECT_EQ(layer.state_dict().size(), 0u);
  EXPECT_EQ(layer.num_gemms, 3);
  EXPECT_EQ(layer.config, config);
}

// labels: KitchenGroupedLinear
TEST_F(KitchenGroupedLinearTest, EachMissingKeywordIsNamed) {
  const std::vector<std::pair<std::string, std::function<void(GroupedLinearArgs&)>>> cases = {
      {"parallel_mode", [](auto& a) { a.parallel_mode = Required<std::optional<std::string>>(); }},
      {"config", [](auto& a) { a.config = Required<std::shared_ptr<ModelParallelConfig>>(); }},
      {"init_method", [](auto& a) { a.init_method = Required<InitMethod>(); }},
      {"bias", [](auto& a) { a.bias = Required<bool>(); }},
      {"skip_bias_add", [](auto& a) { a.skip_bias_add = Required<bool>(); }}};
  for (const auto& [name, unset] : cases) {
    GroupedLinearArgs a = grouped_args(config, "diagonal");
    unset(a);
    EXPECT_TRUE(throws<TypeError>([&] { KitchenGroupedLinear(2, 4, 6, a); },
                                  {"missing required keyword argument '" + name + "'"}));
  }
}

// labels: KitchenGroupedLinear D30
TEST_F(KitchenGroupedLinearTest, ConstructorRefusesByName) {
  for (const std::int64_t experts : {0, -1}) {
    EXPECT_TRUE(
        throws<ValueError>([&] { KitchenGroupedLinear(experts, 4, 6, grouped_args(config)); },
                           {"num_gemms", std::to_string(experts)}));
  }
  EXPECT_TRUE(
      throws<ValueError>([&] { KitchenGroupedLinear(2, 4, 6, grouped_args(config, "duplicated")); },
                         {"parallel_mode", "duplicated"}));
  TransformerConfig delayed = testing::small_transformer();
  delayed.delay_wgrad_compute = true;
  EXPECT_TRUE(throws<NotImplementedError>(
      [&] { KitchenGroupedLinear(2, 4, 6, grouped_args(make_config(delayed))); },
      {"delay_wgrad_compute"}));
}

// labels: KitchenGroupedLinear.finish_init
TEST_F(KitchenGroupedLinearTest, FinishInitAllocatesOnceUnderTheNamesOfTheExperts) {
  const auto layer = finished(grouped_args(config), 2, 4, 6, 2);
  std::vector<std::string> names;
  for (const auto& [name, parameter] : layer->named_parameters()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"weight0", "weight1", "bias0", "bias1"}));
  EXPECT_EQ(layer->weight(1).shape(), (Shape{6, 4}));
  EXPECT_EQ(layer->weight(1).shard()->logical_name,
            "mlp.experts.local_experts.1.linear_fc1.weight");
  EXPECT_FALSE(layer->explicit_expert_comm);
  EXPECT_EQ(layer->kitchen_quant_params->qlinear_params->number, 2);
  EXPECT_TRUE(throws<AssertionError>([&] { layer->finish_init(linear_recipe(2)); },
                                     {"KitchenGroupedLinear", "already called"}));
}

// labels: KitchenGroupedLinear.finish_init D27
TEST_F(KitchenGroupedLinearTest, AFailedFinishInitLeavesNothingAndCanBeRepeated) {
  int calls = 0;
  GroupedLinearArgs a = grouped_args(config);
  a.init_method = InitMethod([&](Tensor&) {
    if (++calls == 2) throw ValueError("init refused");
  });
  KitchenGroupedLinear layer(3, 4, 6, a);
  EXPECT_TRUE(throws<AssertionError>([&] { layer.finish_init(std::nullopt); },
                                     {"KitchenGroupedLinear", "expects a quantization config"}));
  EXPECT_TRUE(throws<AssertionError>(
      [&] { layer.finish_init(testing::attention_recipe(1, "a.b")); }, {"a.b", "qlinear_params"}));
  EXPECT_TRUE(throws<ValueError>([&] { layer.finish_init(linear_recipe(1)); }, {"init refused"}));
  EXPECT_TRUE(layer.named_parameters().empty());
  EXPECT_TRUE(throws<AssertionError>(
      [&] {
        (void)layer.forward(tensor({1, 4}, 1), {1, 0, 0});
      },
      {"finish_init"}));
  layer.finish_init(linear_recipe(1));
  EXPECT_EQ(layer.named_parameters().size(), 6u);
}

// labels: KitchenGroupedLinear.finish_init parameter_attributes explicit_expert_comm D8
TEST_F(KitchenGroupedLinearTest, ExpertsDivideTheirSizesAndTellTheirGroup) {
  TransformerConfig parallel = testing::small_transformer();
  parallel.expert_model_parallel_size = 2;
  parallel.num_moe_experts = 4;
  parallel.add_bias_linear = false;
  GroupedLinearArgs a = grouped_args(make_config(parallel));
  a.tp_group = fake_group(2, 1);
  const auto column = finished(a);
  EXPECT_EQ(column->weight(0).shape(), (Shape{3, 4}));
  EXPECT_TRUE(column->explicit_expert_comm);
  EXPECT_TRUE(column->expert_parallel);
  for (const auto& [name, parameter] : column->named_parameters()) {
    EXPECT_FALSE(parameter->allreduce) << name;
    EXPECT_FALSE(parameter->sequence_parallel) << name;
    EXPECT_TRUE(parameter->tensor_model_parallel) << name;
    EXPECT_EQ(parameter->partition_dim, 0) << name;
  }
  a.parallel_mode = std::optional<std::string>("row");
  KitchenGroupedLinear with_bias(2, 4, 6, a);
  EXPECT_TRUE(throws<ValueError>([&] { with_bias.finish_init(linear_recipe(1)); }, {"bias"}));
  a.bias = false;
  EXPECT_EQ(finished(a)->weight(1).shape(), (Shape{6, 2}));
  KitchenGroupedLinear odd(2, 5, 6, a);
  EXPECT_TRUE(throws<AssertionError>([&] { odd.finish_init(linear_recipe(1)); },
                                     {"5 is not divisible by 2"}));
}

// labels: KitchenGroupedLinear.finish_init D4
TEST_F(KitchenGroupedLinearTest, TheGroupIsTheGivenOneThenTheCollectionsThenTheDefault) {
  auto groups = std::make_shared<ProcessGroupCollection>();
  groups->expt_tp = fake_group(2, 0);
  GroupedLinearArgs a = grouped_args(config);
  EXPECT_EQ(finished(a)->weight(0).shape(), (Shape{6, 4}));
  a.pg_collection = groups;
  EXPECT_EQ(finished(a)->weight(0).shape(), (Shape{3, 4}));
  a.tp_group = fake_group(3, 0);
  EXPECT_EQ(finished(a)->weight(0).shape(), (Shape{2, 4}));
}

// labels: KitchenGroupedLinear.finish_init RngTracker
TEST_F(KitchenGroupedLinearTest, ExpertsDrawFromTheirTrackersState) {
  std::uint64_t seed = 0;
  GroupedLinearArgs a = grouped_args(config);
  a.init_method = InitMethod([&](Tensor&) { seed = next_rng().seed; });
  (void)finished(a);
  EXPECT_EQ(seed, 1234u + 1024u);
  a.is_expert = false;
  (void)finished(a);
  EXPECT_EQ(seed, 1234u + 2718u);
}

// labels: KitchenGroupedLinear.finish_init
TEST_F(KitchenGroupedLinearTest, ASplitSequenceIsRefusedUnlessTheLayerIsAnExpert) {
  TransformerConfig split = testing::small_transformer();
  split.sequence_parallel = true;
  split.tensor_model_parallel_size = 2;
  GroupedLinearArgs a = grouped_args(make_config(split));
  a.tp_group = fake_group(2, 0);
  a.is_expert = false;
  KitchenGroupedLinear layer(2, 4, 6, a);
  EXPECT_TRUE(throws<NotImplementedError>([&] { layer.finish_init(linear_recipe(1)); },
                                          {"sequence_parallel", "is_expert"}));
  a.is_expert = true;
  EXPECT_NO_THROW((void)finished(a));
}

// labels: KitchenGroupedLinear.forward
TEST_F(KitchenGroupedLinearTest, SplitsThatDoNotFitAreRefusedNamingBoth) {
  const auto layer = finished(grouped_args(config), 3);
  const Tensor x = tensor({5, 4}, 1);
  EXPECT_TRUE(throws<ValueError>(
      [&] {
        (void)layer->forward(x, {2, 3});
      },
      {"m_splits has 2", "num_gemms = 3"}));
  EXPECT_TRUE(throws<ValueError>(
      [&] {
        (void)layer->forward(x, {2, 2, 2});
      },
      {"sum to 6", "5 rows"}));
  EXPECT_TRUE(throws<ValueError>([&] { (void)layer->forward(x, {6, -1, 0}); }, {"negative"}));
  EXPECT_TRUE(throws<ValueError>(
      [&] {
        (void)layer->forward(tensor({5, 7}, 1), {5, 0, 0});
      },
      {"[5, 7]", "in_features = 4"}));
  EXPECT_TRUE(throws<ValueError>(
      [&] {
        (void)layer->forward(tensor({5, 1, 4}, 1), {5, 0, 0});
      },
      {"[5, 1, 4]"}));
}

// labels: KitchenGroupedLinear.forward
TEST_F(KitchenGroupedLinearTest, BiasAndSkipDecideTheReturnedPair) {
  for (const bool bias : {false, true}) {
    for (const bool skip : {false, true}) {
      GroupedLinearArgs a = grouped_args(config);
      a.bias = bias;
      a.skip_bias_add = skip;
      const auto layer = finished(a);
      EXPECT_EQ(layer->kitchen_return_bias, bias && skip);
      for (int i = 0; bias && i < 2; ++i) layer->bias(i).set_data(tensor({6}, 7));
      const auto [y, biases] =
          layer->forward(Tensor::zeros(context, {3, 4}, DType::float32), {2, 1});
      ASSERT_EQ(biases.has_value(), bias && skip);
      if (biases) {
        EXPECT_EQ(biases->at(1).id(), layer->bias(1).id());
      }
      const Tensor row =
          bias && !skip ? tensor({6}, 7) : Tensor::zeros(context, {6}, DType::float32);
      for (int r = 0; r < 3; ++r) EXPECT_EQ(values_of(y.detach().slice(0, r, 1)), values_of(row));
    }
  }
}

// labels: KitchenGroupedLinear._encode_extra_state KitchenGroupedLinear._decode_extra_state D6
TEST_F(KitchenGroupedLinearTest, EncodedStatesDecodeToThemselves) {
  const auto layer = finished(grouped_args(config));
  for (const ExtraState& state : std::vector<ExtraState>{{}, {{}, {}}, {{1, 2, 3}, {}, {255}}}) {
    const Tensor encoded = layer->_encode_extra_state(state);
    EXPECT_EQ(encoded.dtype(), DType::uint8);
    EXPECT_EQ(encoded.rank(), 1);
    EXPECT_EQ(layer->_decode_extra_state(encoded), state);
  }
  EXPECT_TRUE(layer->_decode_extra_state(Tensor::empty(context, {0}, DType::uint8)).empty());
}

// labels: KitchenGroupedLinear._decode_extra_state D6
TEST_F(KitchenGroupedLinearTest, WhatIsNoEncodedStateIsRefused) {
  const auto layer = finished(grouped_args(config));
  const auto refused = [&](const Tensor& state) {
    return throws<RuntimeError>([&] { (void)layer->_decode_extra_state(state); },
                                {"Unsupported checkpoint format"});
  };
  EXPECT_TRUE(refused(Tensor()));
  EXPECT_TRUE(refused(tensor({4}, 1)));
  const std::vector<std::uint8_t> whole =
      layer->_encode_extra_state({{1, 2, 3}, {4}}).to_vector<std::uint8_t>();
  const auto bytes = [&](std::vector<std::uint8_t> values) {
    const auto count = static_cast<std::int64_t>(values.size());
    return Tensor::from_vector(context, {count}, values);
  };
  for (std::size_t length = 1; length < whole.size(); ++length) {
    const auto end = whole.begin() + static_cast<std::ptrdiff_t>(length);
    EXPECT_TRUE(refused(bytes({whole.begin(), end}))) << length;
  }
  std::vector<std::uint8_t> changed = whole;
  changed.push_back(0);
  EXPECT_TRUE(refused(bytes(changed)));
  changed = whole;
  changed[3] = 9;
  EXPECT_TRUE(refused(bytes(changed)));
  changed = whole;
  changed[11] = 0x7f;  // 2^62 experts
  EXPECT_TRUE(refused(bytes(changed)));
}

// labels: KitchenGroupedLinear._split_extra_state
TEST_F(KitchenGroupedLinearTest, AnEmptyStateIsSplitIntoOneForEachExpert) {
  const auto layer = finished(grouped_args(config), 3);
  const std::vector<Tensor> split = layer->_split_extra_state(layer->get_extra_state());
  ASSERT_EQ(split.size(), 3u);
  for (const Tensor& state : split) {
    EXPECT_EQ(state.numel(), 0);
    EXPECT_EQ(state.dtype(), DType::uint8);
  }
  EXPECT_TRUE(throws<AssertionError>(
      [&] {
        (void)layer->_split_extra_state(layer->_encode_extra_state({{1}, {2}}));
      },
      {"2 experts", "has 3"}));
}

// labels: KitchenGroupedLinear delayed_scaling
TEST_F(KitchenGroupedLinearTest, StatesOfADistributedCheckpointAreMergedUnlessOneIsMissing) {
  const auto build = [&] {
    auto layer = std::make_shared<KitchenGroupedLinear>(2, 32, 32, grouped_args(config));
    layer->finish_init(named_linear_recipe("fp8_delayed", "mlp.experts.linear_fc1"));
    return layer;
  };
  const auto trained = build();
  (void)trained->forward(leaf({6, 32}, 1), {4, 2});
  trained->finish_quantization_step();
  const std::vector<Tensor> split = trained->_split_extra_state(trained->get_extra_state());
  StateDict state;
  state.set("_extra_state", split[0]);
  const auto restored = build();
  EXPECT_TRUE(throws<RuntimeError>([&] { restored->load_state_dict(state, /*strict=*/false); },
                                   {"_extra_state", "no extra state of a grouped layer"}));
  state.set("_extra_state1", split[1]);
  restored->load_state_dict(state, /*strict=*/false);
  EXPECT_TRUE(same_bits(trained->get_extra_state(), restored->get_extra_state()));
  const auto whole = build();
  whole->load_state_dict(trained->state_dict());
  EXPECT_TRUE(same_bits(trained->get_extra_state(), whole->get_extra_state()));
}

// labels: KitchenColumnParallelGroupedLinear KitchenRowParallelGroupedLinear
TEST_F(KitchenGroupedLinearTest, TheSpecialisationsRequireIsExpert) {
  auto column = expert_args<ColumnParallelGroupedLinearArgs>(config);
  column.is_expert = Required<bool>();
  EXPECT_TRUE(
      throws<TypeError>([&] { KitchenColumnParallelGroupedLinear(2, 4, 6, column); },
                        {"KitchenColumnParallelGroupedLinear", "keyword argument 'is_expert'"}));
  auto row = expert_args<RowParallelGroupedLinearArgs>(config);
  row.is_expert = Required<bool>();
  EXPECT_TRUE(
      throws<TypeError>([&] { KitchenRowParallelGroupedLinear(2, 4, 6, row); },
                        {"KitchenRowParallelGroupedLinear", "keyword argument 'is_expert'"}));
}

// labels: KitchenColumnParallelGroupedLinear.sharded_state_dict D19
TEST_F(KitchenGroupedLinearTest, ShardsShareAKeyAndDifferByAnExpertAxis) {
  auto column_args = expert_args<ColumnParallelGroupedLinearArgs>(config);
  column_args.tp_group = fake_group(2, 1);
  KitchenColumnParallelGroupedLinear column(2, 4, 6, column_args);
  EXPECT_TRUE(throws<AssertionError>([&] { (void)column.sharded_state_dict(); }, {"finish_init"}));
  column.finish_init(linear_recipe(1, "mlp.experts.linear_fc1"));
  const ShardedStateDict dict = column.sharded_state_dict("fc1.", {{0, 3, 5}});
  std::vector<std::string> names;
  for (const auto& [name, value] : dict.items()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"fc1.weight0", "fc1.bias0", "fc1._extra_state",
                                             "fc1.weight1", "fc1.bias1", "fc1._extra_state1"}));
  const auto weight = std::get<ShardedTensor>(dict.at("fc1.weight1"));
  EXPECT_EQ(weight.key, "fc1.weight");
  EXPECT_EQ(weight.global_shape, (Shape{5, 2, 6, 4}));
  EXPECT_EQ(weight.global_offset, (Shape{3, 1, 3, 0}));
  EXPECT_EQ(weight.prepend_axis_num, 2);
  EXPECT_EQ(std::get<ShardedTensor>(dict.at("fc1.bias0")).global_offset, (Shape{3, 0, 3}));
  const auto state = std::get<ShardedObject>(dict.at("fc1._extra_state1"));
  EXPECT_EQ(state.key, "fc1._extra_state");
  EXPECT_EQ(state.global_shape, (Shape{5, 2}));
  EXPECT_EQ(state.global_offset, (Shape{3, 1}));
}

// labels: KitchenRowParallelGroupedLinear.sharded_state_dict
TEST_F(KitchenGroupedLinearTest, RowShardsSplitWeightsAndReplicateBiases) {
  const auto build = [&](bool bias, const std::shared_ptr<ProcessGroup>& group) {
    auto args = expert_args<RowParallelGroupedLinearArgs>(config, bias);
    args.tp_group = group;
    auto layer = std::make_shared<KitchenRowParallelGroupedLinear>(2, 4, 6, args);
    layer->finish_init(linear_recipe(1, "mlp.experts.linear_fc2"));
    return layer;
  };
  ShardedStateDict dict = build(false, fake_group(2, 1))->sharded_state_dict();
  const auto weight = std::get<ShardedTensor>(dict.at("weight1"));
  EXPECT_EQ(weight.global_shape, (Shape{2, 6, 4}));
  EXPECT_EQ(weight.global_offset, (Shape{1, 0, 2}));
  const auto row = build(true, fake_group(1, 0));
  dict = row->sharded_state_dict();
  EXPECT_EQ(std::get<ShardedTensor>(dict.at("bias1")).axis_fragmentations, (Shape{2, 1}));
  EXPECT_EQ(std::get<ShardedTensor>(dict.at("bias1")).replica_id, (ReplicaId{0, 0, 0}));
  Metadata metadata;
  metadata.singleton_local_shards = true;
  EXPECT_TRUE(throws<NotImplementedError>([&] { (void)row->sharded_state_dict("", {}, &metadata); },
                                          {"singleton_local_shards"}));
}

}  // namespace
}  // namespace kitchen
