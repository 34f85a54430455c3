#include "kitchen/modules/linear.h"

#include "kitchen/autograd/backward.h"
#include "kitchen/autograd/math_functions.h"
#include "kitchen/base/error.h"
#include "kitchen/modules/column_parallel_linear.h"
#include "kitchen/modules/init_methods.h"
#include "kitchen/modules/norm_module.h"
#include "kitchen/modules/row_parallel_linear.h"
#include "kitchen/modules/vocab_parallel_embedding.h"
#include "kitchen/recipes/predefined.h"
#include "support/compare.h"
#include "support/expect_error.h"
#include "support/layers.h"
#include "support/rank_test.h"

#include <gtest/gtest.h>

namespace kitchen {
namespace {

using testing::fake_group;
using testing::RankTest;
using testing::same_bits;
using testing::throws;
using testing::values_of;

using LinearModule = RankTest;

modules::LinearOptions options_of(std::int64_t in, std::int64_t out) {
  modules::LinearOptions options;
  options.in_features = in;
  options.out_features = out;
  options.init_method = init_method_normal(1.0);
  options.device = Device::cpu();
  options.logical_name = "decoder.layers.0.linear";
  return options;
}

std::shared_ptr<modules::Linear> make_linear(const modules::LinearOptions& options) {
  auto linear = std::make_shared<modules::Linear>();
  linear->init(options);
  return linear;
}

/// Rows [start, start + count) of a matrix.
Tensor rows(const Tensor& x, std::int64_t start, std::int64_t count) {
  return x.detach().slice(0, start, count);
}

// labels: modules.Linear init_method_normal KitchenColumnParallelLinear
TEST_F(LinearModule, AColumnSplitStartsFromTheRowsOfTheWholeWeight) {
  const auto whole = make_linear(options_of(5, 6));
  for (int rank = 0; rank < 2; ++rank) {
    modules::LinearOptions options = options_of(5, 6);
    options.parallel_mode = "column";
    options.tp_group = fake_group(2, rank);
    options.tp_size = 2;
    const auto part = make_linear(options);
    EXPECT_EQ(part->out_features, 3);
    EXPECT_EQ(part->in_features, 5);
    EXPECT_EQ(part->bias.shape(), (Shape{3}));
    EXPECT_TRUE(same_bits(rows(whole->weight, rank * 3, 3), part->weight.detach()));
  }
}

// labels: modules.Linear init_method_normal KitchenRowParallelLinear
TEST_F(LinearModule, ARowSplitStartsFromTheColumnsOfTheWholeWeight) {
  const auto whole = make_linear(options_of(6, 5));
  for (int rank = 0; rank < 2; ++rank) {
    modules::LinearOptions options = options_of(6, 5);
    options.parallel_mode = "row";
    options.tp_group = fake_group(2, rank);
    options.tp_size = 2;
    const auto part = make_linear(options);
    EXPECT_EQ(part->in_features, 3);
    EXPECT_EQ(part->bias.shape(), (Shape{5}));
    EXPECT_TRUE(same_bits(whole->weight.detach().slice(1, rank * 3, 3), part->weight.detach()));
  }
}

// labels: modules.Linear init_method_normal D3
TEST_F(LinearModule, AGatedSplitTakesRowsOfGateAndUp) {
  const auto whole = make_linear(options_of(5, 8));  // gate rows 0-3, up rows 4-7
  for (int rank = 0; rank < 2; ++rank) {
    modules::LinearOptions options = options_of(5, 8);
    options.parallel_mode = "column";
    options.tp_group = fake_group(2, rank);
    options.tp_size = 2;
    options.partition_stride = 2;
    const auto part = make_linear(options);
    EXPECT_TRUE(same_bits(rows(whole->weight, rank * 2, 2), rows(part->weight, 0, 2)));
    EXPECT_TRUE(same_bits(rows(whole->weight, 4 + rank * 2, 2), rows(part->weight, 2, 2)));
  }
  modules::LinearOptions alone = options_of(5, 8);
  alone.parallel_mode = "column";
  alone.partition_stride = 2;
  EXPECT_TRUE(same_bits(whole->weight.detach(), make_linear(alone)->weight.detach()));
}

// labels: modules.Linear init_method_normal
TEST_F(LinearModule, InitDependsOnSeedAndNameOnly) {
  const Tensor first = make_linear(options_of(5, 6))->weight.detach();
  (void)next_rng();
  EXPECT_TRUE(same_bits(first, make_linear(options_of(5, 6))->weight.detach()));
  modules::LinearOptions other = options_of(5, 6);
  other.logical_name = "decoder.layers.1.linear";
  EXPECT_FALSE(same_bits(first, make_linear(other)->weight.detach()));
  model_parallel_cuda_manual_seed(4321);
  EXPECT_FALSE(same_bits(first, make_linear(options_of(5, 6))->weight.detach()));
  // Without a name the creation counter names the layer: two layers differ.
  modules::LinearOptions nameless = options_of(5, 6);
  nameless.logical_name.clear();
  const auto a = make_linear(nameless);
  const auto b = make_linear(nameless);
  EXPECT_FALSE(same_bits(a->weight.detach(), b->weight.detach()));
}

// labels: modules.Linear RngTracker
TEST_F(LinearModule, AUsersInitDrawsInsideOfTheTrackersState) {
  std::uint64_t seed = 0;
  modules::LinearOptions options = options_of(2, 2);
  options.init_method = [&](Tensor& w) {
    EXPECT_TRUE(w.shard());
    seed = next_rng().seed;
  };
  (void)make_linear(options);
  EXPECT_EQ(seed, 1234u);  // no tracker given: the default generator
  options.rng_tracker = &get_cuda_rng_tracker();
  (void)make_linear(options);
  EXPECT_EQ(seed, 1234u + 2718u);
  options.rng_tracker_name = "expert-parallel-rng";
  (void)make_linear(options);
  EXPECT_EQ(seed, 1234u + 1024u);
  get_cuda_rng_tracker().reset();
  (void)make_linear(options);  // a tracker without states: the default generator
  EXPECT_EQ(seed, 1234u);
}

// labels: modules.Linear
TEST_F(LinearModule, AFailedInitLeavesNoParameter) {
  modules::Linear linear;
  modules::LinearOptions options = options_of(2, 2);
  options.init_method = [](Tensor&) { throw RuntimeError("init failed"); };
  EXPECT_TRUE(throws<RuntimeError>([&] { linear.init(options); }, {"init failed"}));
  EXPECT_TRUE(linear.named_parameters().empty());
  options.parallel_mode = "column";
  options.tp_group = fake_group(4, 0);
  options.tp_size = 4;
  EXPECT_TRUE(throws<AssertionError>([&] { linear.init(options); }, {"2 is not divisible by 4"}));
}

/// Fails when weight and bias are there already.
class FailsLate : public modules::Linear {
 protected:
  void allocate_parameters(const ContextPtr& where) override {
    Linear::allocate_parameters(where);
    throw RuntimeError("out of memory");
  }
};

// labels: modules.Linear
TEST_F(LinearModule, AnInitThatFailsLateTakesItsParametersBack) {
  FailsLate linear;
  EXPECT_TRUE(throws<RuntimeError>([&] { linear.init(options_of(2, 2)); }, {"out of memory"}));
  EXPECT_TRUE(linear.named_parameters().empty());
  EXPECT_FALSE(linear.weight.defined());
}

// labels: modules.Linear init_model_with_meta_device
TEST_F(LinearModule, ResetGivesStorageAndKeepsHandlesAndAttributes) {
  modules::LinearOptions options = options_of(5, 6);
  options.device = Device::meta();
  const auto linear = make_linear(options);
  EXPECT_TRUE(linear->weight.context()->is_meta());
  const Tensor handle = linear->weight;
  linear->weight.allreduce = false;
  linear->bias.sequence_parallel = true;
  linear->reset_parameters();
  EXPECT_EQ(linear->weight.id(), handle.id());
  EXPECT_EQ(handle.context(), context);
  EXPECT_FALSE(linear->weight.allreduce);
  EXPECT_TRUE(linear->bias.sequence_parallel);
  EXPECT_TRUE(linear->weight.requires_grad());
  EXPECT_TRUE(same_bits(make_linear(options_of(5, 6))->weight.detach(), handle.detach()));
}

// labels: modules.Linear D9
TEST_F(LinearModule, AGroupMayComeLateButNotAfterAForward) {
  const auto linear = make_linear(options_of(5, 6));
  EXPECT_TRUE(throws<ValueError>([&] { linear->set_tensor_parallel_group(fake_group(2, 0)); },
                                 {"2 ranks", "built for 1"}));
  EXPECT_TRUE(throws<ValueError>([&] { linear->set_tensor_parallel_group(nullptr); }, {"built for 1"}));
  EXPECT_NO_THROW(linear->set_tensor_parallel_group(ProcessGroup::self()));
  (void)linear->forward(tensor({1, 5}, 1), {});
  EXPECT_TRUE(throws<ValueError>([&] { linear->set_tensor_parallel_group(ProcessGroup::self()); },
                                 {"after the first forward"}));
}

// labels: modules.Linear set_is_first_microbatch
TEST_F(LinearModule, AnUnquantizedWeightIsNeverStale) {
  const auto linear = make_linear(options_of(5, 6));
  const Tensor x = tensor({2, 5}, 1);
  (void)linear->forward(x, true);
  init_method_constant(0.0f)(linear->weight);
  linear->weight.bump_version();
  EXPECT_EQ(values_of(linear->forward(x, false).first.detach()), (std::vector<double>(12, 0.0)));
}

// labels: modules.Linear set_is_first_microbatch
TEST_F(LinearModule, AQuantizedWeightThatChangedUnderTheCacheIsAnError) {
  modules::LinearOptions options = options_of(5, 6);
  options.qlinear_params = get_qlinear_params_from_qat_params(2);
  const auto linear = make_linear(options);
  const Tensor x = tensor({2, 5}, 1);
  (void)linear->forward(x, true);
  EXPECT_NO_THROW((void)linear->forward(x, false));
  linear->weight.bump_version();
  EXPECT_TRUE(throws<RuntimeError>([&] { (void)linear->forward(x, false); },
                                   {"decoder.layers.0.linear", "set_is_first_microbatch"}));
  EXPECT_NO_THROW((void)linear->forward(x, std::nullopt));
  EXPECT_NO_THROW((void)linear->forward(x, true));
}

// labels: modules.Linear _extra_state
TEST_F(LinearModule, ExtraStateIsEmptyAndAnyIsAccepted) {
  const auto linear = make_linear(options_of(5, 6));
  EXPECT_EQ(linear->get_extra_state().dtype(), DType::uint8);
  EXPECT_EQ(linear->get_extra_state().numel(), 0);
  EXPECT_NO_THROW(linear->set_extra_state(Tensor()));
  EXPECT_NO_THROW(linear->set_extra_state(Tensor::zeros(context, {9}, DType::uint8)));
  StateDict state = linear->state_dict();
  EXPECT_TRUE(state.contains("_extra_state"));
  state.erase("_extra_state");
  EXPECT_NO_THROW(linear->load_state_dict(state));
}

// labels: ColumnParallelLinear RowParallelLinear sharded_state_dict
TEST_F(LinearModule, LocalLayersShardOverTheirOwnGroup) {
  const auto config = make_config(testing::small_transformer());
  ColumnParallelLinear::Args column;
  column.config = config;
  column.init_method = init_method_normal(1.0);
  column.tp_group = fake_group(2, 1);
  ColumnParallelLinear fc1(5, 6, column);
  ShardedStateDict sharded = fc1.sharded_state_dict("a.");
  EXPECT_EQ(std::get<ShardedTensor>(sharded.at("a.weight")).global_offset, (Shape{3, 0}));
  EXPECT_EQ(std::get<ShardedTensor>(sharded.at("a.bias")).global_shape, (Shape{6}));
  RowParallelLinear::Args row;
  row.config = config;
  row.init_method = column.init_method;
  row.tp_group = column.tp_group;
  RowParallelLinear fc2(6, 5, row);
  sharded = fc2.sharded_state_dict();
  EXPECT_EQ(std::get<ShardedTensor>(sharded.at("weight")).global_offset, (Shape{0, 3}));
  EXPECT_EQ(std::get<ShardedTensor>(sharded.at("bias")).replica_id, (ReplicaId{0, 1, 0}));
  VocabParallelEmbedding embedding(6, 5, column.init_method, *config, column.tp_group);
  sharded = embedding.sharded_state_dict();
  EXPECT_EQ(std::get<ShardedTensor>(sharded.at("weight")).global_offset, (Shape{3, 0}));
}

// labels: ColumnParallelLinear RowParallelLinear
TEST_F(LinearModule, LocalLayersTakeASharedWeightOrRefuse) {
  ColumnParallelLinear::Args args;
  args.config = make_config(testing::small_transformer());
  args.skip_weight_param_allocation = true;
  EXPECT_TRUE(throws<ValueError>([&] { ColumnParallelLinear(5, 6, args); },
                                 {"skip_weight_param_allocation", "bias"}));
  args.bias = false;
  ColumnParallelLinear layer(5, 6, args);
  EXPECT_TRUE(layer.named_parameters().empty());
  EXPECT_TRUE(throws<RuntimeError>([&] { (void)layer.forward(tensor({1, 5}, 1)); }, {"no weight"}));
  const Tensor w = leaf({6, 5}, 2);
  const Tensor y = layer.forward(tensor({1, 5}, 1), w).first;
  autograd::backward(autograd::sum(y));
  EXPECT_EQ(autograd::grad_of(w).shape(), (Shape{6, 5}));
  TransformerConfig config = testing::small_transformer();
  config.tensor_model_parallel_size = 2;
  config.sequence_parallel = true;
  RowParallelLinear::Args row;
  row.config = make_config(config);
  row.input_is_parallel = false;
  row.tp_group = fake_group(2, 0);
  EXPECT_TRUE(throws<ValueError>([&] { RowParallelLinear(6, 5, row); },
                                 {"input_is_parallel", "sequence_parallel"}));
}

// labels: LayerNormImpl RMSNormImpl IdentityOp
TEST_F(LinearModule, NormModulesStartNeutral) {
  TransformerConfig config = testing::small_transformer();
  const Tensor x = tensor({2, 3, 6}, 1);
  LayerNormImpl layer_norm(config, 6, 1e-5);
  EXPECT_EQ(values_of(layer_norm.weight.detach()), (std::vector<double>(6, 1.0)));
  EXPECT_EQ(values_of(layer_norm.bias.detach()), (std::vector<double>(6, 0.0)));
  const Tensor y = layer_norm.forward(x);
  config.layernorm_zero_centered_gamma = true;
  config.sequence_parallel = true;
  LayerNormImpl zero_centered(config, 6, 1e-5);
  EXPECT_EQ(values_of(zero_centered.weight.detach()), (std::vector<double>(6, 0.0)));
  EXPECT_TRUE(zero_centered.weight.sequence_parallel);
  EXPECT_TRUE(same_bits(y.detach(), zero_centered.forward(x).detach()));
  RMSNormImpl rms(config, 6, 1e-5);
  EXPECT_FALSE(rms.bias.defined());
  EXPECT_EQ(IdentityOp().forward(x).id(), x.id());
}

}  // namespace
}  // namespace kitchen
