#include "kitchen/autograd/backward.h"
#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/modules/column_parallel_linear.h"
#include "kitchen/modules/row_parallel_linear.h"
#include "support/compare.h"
#include "support/expect_error.h"
#include "support/kitchen_layers.h"
#include "support/rank_test.h"

#include <gtest/gtest.h>

#include <functional>
#include <sstream>

namespace kitchen {
namespace {

using testing::column_args;
using testing::fake_group;
using testing::linear_recipe;
using testing::row_args;
using testing::same_bits;
using testing::throws;
using testing::values_of;

class KitchenParallelLinear : public testing::RankTest {
 protected:
  std::shared_ptr<TransformerConfig> config = make_config(testing::small_transformer());
};

// labels: KitchenColumnParallelLinear
TEST_F(KitchenParallelLinear, ColumnNamesEachMissingKeyword) {
  const std::vector<std::pair<std::string, std::function<void(ColumnParallelLinearArgs&)>>> cases = {
      {"config", [](auto& a) { a.config = Required<std::shared_ptr<ModelParallelConfig>>(); }},
      {"init_method", [](auto& a) { a.init_method = Required<InitMethod>(); }},
      {"gather_output", [](auto& a) { a.gather_output = Required<bool>(); }},
      {"bias", [](auto& a) { a.bias = Required<bool>(); }},
      {"skip_bias_add", [](auto& a) { a.skip_bias_add = Required<bool>(); }},
      {"is_expert", [](auto& a) { a.is_expert = Required<bool>(); }}};
  for (const auto& [name, unset] : cases) {
    ColumnParallelLinearArgs a = column_args(config);
    a.gather_output = true;
    unset(a);
    EXPECT_TRUE(throws<TypeError>([&] { KitchenColumnParallelLinear(5, 6, a); },
                                  {"KitchenColumnParallelLinear",
                                   "missing required keyword argument '" + name + "'"}));
  }
}

// labels: KitchenRowParallelLinear
TEST_F(KitchenParallelLinear, RowNamesEachMissingKeyword) {
  const std::vector<std::pair<std::string, std::function<void(RowParallelLinearArgs&)>>> cases = {
      {"config", [](auto& a) { a.config = Required<std::shared_ptr<ModelParallelConfig>>(); }},
      {"init_method", [](auto& a) { a.init_method = Required<InitMethod>(); }},
      {"bias", [](auto& a) { a.bias = Required<bool>(); }},
      {"input_is_parallel", [](auto& a) { a.input_is_parallel = Required<bool>(); }},
      {"skip_bias_add", [](auto& a) { a.skip_bias_add = Required<bool>(); }},
      {"is_expert", [](auto& a) { a.is_expert = Required<bool>(); }}};
  for (const auto& [name, unset] : cases) {
    RowParallelLinearArgs a = row_args(config);
    a.input_is_parallel = false;
    unset(a);
    EXPECT_TRUE(throws<TypeError>([&] { KitchenRowParallelLinear(5, 6, a); },
                                  {"KitchenRowParallelLinear",
                                   "missing required keyword argument '" + name + "'"}));
  }
}

// labels: KitchenColumnParallelLinear KitchenRowParallelLinear
TEST_F(KitchenParallelLinear, RefusalsComeInOrder) {
  TransformerConfig host = testing::small_transformer();
  host.use_cpu_initialization = true;
  host.delay_wgrad_compute = true;
  ColumnParallelLinearArgs column = column_args(make_config(host));
  column.gather_output = true;
  column.skip_weight_param_allocation = true;
  const auto build = [&] { KitchenColumnParallelLinear(5, 6, column); };
  EXPECT_TRUE(throws<ValueError>(build, {"gather_output"}));
  column.gather_output = false;
  EXPECT_TRUE(throws<ValueError>(build, {"skip_weight_param_allocation"}));
  column.skip_weight_param_allocation = false;
  EXPECT_TRUE(throws<NotImplementedError>(build, {"delay_wgrad_compute"}));
  host.delay_wgrad_compute = false;
  column.config = std::shared_ptr<ModelParallelConfig>(make_config(host));
  EXPECT_TRUE(throws<ValueError>(build, {"use_cpu_initialization"}));
  RowParallelLinearArgs row = row_args(make_config(host));
  row.input_is_parallel = false;
  EXPECT_TRUE(throws<ValueError>([&] { KitchenRowParallelLinear(5, 6, row); }, {"input_is_parallel"}));
  row.input_is_parallel = true;
  EXPECT_TRUE(
      throws<ValueError>([&] { KitchenRowParallelLinear(5, 6, row); }, {"use_cpu_initialization"}));
}

// labels: KitchenColumnParallelLinear KitchenRowParallelLinear
TEST_F(KitchenParallelLinear, IndivisibleSizesNameBothNumbers) {
  ColumnParallelLinearArgs column = column_args(config);
  column.tp_group = fake_group(4, 1);
  KitchenColumnParallelLinear fc1(8, 6, column);
  EXPECT_TRUE(throws<AssertionError>([&] { fc1.finish_init(linear_recipe(1)); },
                                     {"6 is not divisible by 4"}));
  RowParallelLinearArgs row = row_args(config);
  row.tp_group = fake_group(4, 1);
  KitchenRowParallelLinear fc2(6, 8, row);
  EXPECT_TRUE(throws<AssertionError>([&] { fc2.finish_init(linear_recipe(1)); },
                                     {"6 is not divisible by 4"}));
  EXPECT_FALSE(fc2.init_finished);
}

// labels: KitchenColumnParallelLinear KitchenRowParallelLinear D9 recipe_1
TEST_F(KitchenParallelLinear, WithRecipeOneTheyEqualTheLocalLayers) {
  for (const TransformerConfig& c : {testing::small_transformer(), testing::bf16_transformer()}) {
    const auto shared = make_config(c);
    KitchenColumnParallelLinear column(5, 6, column_args(shared));  // no group given: this rank alone
    column.finish_init(linear_recipe(1));
    ColumnParallelLinear::Args local;
    local.config = shared;
    ColumnParallelLinear oracle(5, 6, local);
    oracle.weight.set_data(column.weight.detach());
    const Tensor x = leaf({3, 2, 5}, 1, c.params_dtype);
    const Tensor x2 = leaf({3, 2, 5}, 1, c.params_dtype);
    const Tensor dy = tensor({3, 2, 6}, 2, c.params_dtype);
    const Tensor y = column.forward(x).first;
    const Tensor y2 = oracle.forward(x2).first;
    autograd::backward(y, dy);
    autograd::backward(y2, dy);
    EXPECT_TRUE(same_bits(y2.detach(), y.detach()));
    EXPECT_TRUE(same_bits(autograd::grad_of(x2), autograd::grad_of(x)));
    EXPECT_TRUE(same_bits(oracle.weight.grad(), column.weight.grad()));
    EXPECT_TRUE(same_bits(oracle.bias.grad(), column.bias.grad()));
    KitchenRowParallelLinear row(5, 6, row_args(shared));
    row.finish_init(linear_recipe(1));
    row.weight.set_data(column.weight.detach());
    EXPECT_TRUE(same_bits(y.detach(), row.forward(x).first.detach()));
  }
}

// labels: KitchenColumnParallelLinear.__repr__ KitchenRowParallelLinear.__repr__
TEST_F(KitchenParallelLinear, ReprGivesLocalSizes) {
  ColumnParallelLinearArgs column = column_args(config);
  column.tp_group = fake_group(2, 0);
  KitchenColumnParallelLinear fc1(8, 6, column);
  EXPECT_EQ(fc1.repr(), "KitchenColumnParallelLinear(uninitialized)");
  fc1.finish_init(linear_recipe(2));
  EXPECT_EQ(fc1.repr(), "KitchenColumnParallelLinear(in_features=8, out_features=3, bias=True, TP=2)");
  RowParallelLinearArgs row = row_args(config);
  row.tp_group = fake_group(2, 0);
  row.bias = false;
  KitchenRowParallelLinear fc2(8, 6, row);
  std::ostringstream before;
  before << fc2;
  EXPECT_EQ(before.str(), "KitchenRowParallelLinear(uninitialized)");
  fc2.finish_init(linear_recipe(2));
  EXPECT_EQ(fc2.repr(), "KitchenRowParallelLinear(in_features=4, out_features=6, bias=False, TP=2)");
}

// labels: KitchenColumnParallelLinear.sharded_state_dict KitchenRowParallelLinear.sharded_state_dict
TEST_F(KitchenParallelLinear, ShardsFollowTheSplitDimension) {
  Metadata metadata;
  metadata.dp_cp_group = fake_group(3, 2);
  ColumnParallelLinearArgs column = column_args(config);
  column.tp_group = fake_group(2, 1);
  column.stride = 2;
  KitchenColumnParallelLinear fc1(8, 6, column);
  EXPECT_TRUE(throws<AssertionError>([&] { (void)fc1.sharded_state_dict(); },
                                     {"KitchenColumnParallelLinear", "finish_init"}));
  fc1.finish_init(linear_recipe(2));
  EXPECT_EQ(fc1.weight.partition_stride, 2);
  const ShardedStateDict a = fc1.sharded_state_dict("fc1.", {}, &metadata);
  const auto& w1 = std::get<ShardedTensor>(a.at("fc1.weight"));
  EXPECT_EQ(w1.global_shape, (Shape{6, 8}));
  EXPECT_EQ(w1.global_offset, (Shape{3, 0}));
  EXPECT_EQ(w1.replica_id, (ReplicaId{0, 0, 2}));
  const auto& b1 = std::get<ShardedTensor>(a.at("fc1.bias"));
  EXPECT_EQ(b1.global_shape, (Shape{6}));
  EXPECT_EQ(b1.global_offset, (Shape{3}));
  EXPECT_EQ(std::get<ShardedObject>(a.at("fc1._extra_state")).replica_id, (ReplicaId{0, 1, 2}));
  RowParallelLinearArgs row = row_args(config);
  row.tp_group = fake_group(2, 1);
  KitchenRowParallelLinear fc2(8, 6, row);
  EXPECT_TRUE(throws<AssertionError>([&] { (void)fc2.sharded_state_dict(); }, {"finish_init"}));
  fc2.finish_init(linear_recipe(2));
  const ShardedStateDict b = fc2.sharded_state_dict("fc2.", {}, &metadata);
  const auto& w2 = std::get<ShardedTensor>(b.at("fc2.weight"));
  EXPECT_EQ(w2.global_shape, (Shape{6, 8}));
  EXPECT_EQ(w2.global_offset, (Shape{0, 4}));
  const auto& b2 = std::get<ShardedTensor>(b.at("fc2.bias"));
  EXPECT_EQ(b2.global_shape, (Shape{6}));
  EXPECT_EQ(b2.replica_id, (ReplicaId{0, 1, 2}));
}

// labels: KitchenColumnParallelLinear.sharded_state_dict explicit_expert_comm
TEST_F(KitchenParallelLinear, AnExpertsShardsKnowTheGroupThatDividedThem) {
  ColumnParallelLinearArgs args = column_args(config);
  args.is_expert = true;
  args.tp_group = fake_group(2, 1);
  KitchenColumnParallelLinear expert(8, 6, args);
  expert.finish_init(linear_recipe(2));
  const auto shard = std::get<ShardedTensor>(expert.sharded_state_dict().at("weight"));
  EXPECT_EQ(shard.local_shape, (Shape{3, 8}));
  EXPECT_EQ(shard.global_shape, (Shape{6, 8}));
  EXPECT_EQ(shard.global_offset, (Shape{3, 0}));
}

// labels: KitchenColumnParallelLinear KitchenRowParallelLinear build_module
TEST_F(KitchenParallelLinear, SpecsPassEveryKeyword) {
  BuildArgs call({std::int64_t{8}, std::int64_t{6}},
                 {{"config", config},
                  {"init_method", init_method_normal(1.0)},
                  {"gather_output", false},
                  {"bias", true},
                  {"skip_bias_add", true},
                  {"is_expert", false},
                  {"tp_comm_buffer_name", std::optional<std::string>("fc1")},
                  {"layer_number", std::optional<std::int64_t>(3)},
                  {"tp_group", fake_group(2, 1)},
                  {"stride", std::int64_t{2}}});
  const auto column = build_module_as<KitchenColumnParallelLinear>(
      module_type<KitchenColumnParallelLinear>(), call);
  EXPECT_TRUE(column->kitchen_return_bias);
  const LogCapture log;
  column->finish_init(linear_recipe(2));
  EXPECT_EQ(column->weight.partition_stride, 2);
  EXPECT_EQ(column->tp_size, 2);
  EXPECT_EQ(column->ub_name, "fc1");
  EXPECT_EQ(column->options().layer_number, 3);
  EXPECT_TRUE(throws<TypeError>([&] { (void)build_module(module_type<KitchenRowParallelLinear>(), call); },
                                {"unexpected keyword argument", "when instantiating KitchenRowParallelLinear"}));
}

}  // namespace
}  // namespace kitchen
