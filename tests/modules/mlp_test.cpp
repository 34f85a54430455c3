#include "kitchen/modules/mlp.h"

#include "kitchen/autograd/backward.h"
#include "kitchen/autograd/math_functions.h"
#include "kitchen/base/error.h"
#include "kitchen/modules/column_parallel_linear.h"
#include "kitchen/modules/norm_module.h"
#include "kitchen/modules/row_parallel_linear.h"
#include "support/compare.h"
#include "support/exact_product.h"
#include "support/expect_error.h"
#include "support/layers.h"
#include "support/rank_test.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kitchen {
namespace {

using testing::close;
using testing::exact_product;
using testing::throws;
using testing::values_of;

class MlpTest : public testing::RankTest {
 protected:
  static MLPSubmodules local_parts() {
    MLPSubmodules parts;
    parts.linear_fc1 = module_type<ColumnParallelLinear>();
    parts.linear_fc2 = module_type<RowParallelLinear>();
    return parts;
  }
  static TransformerConfig config_of(bool gated, bool bias) {
    TransformerConfig config = testing::small_transformer();
    config.hidden_size = 4;
    config.ffn_hidden_size = 6;
    config.gated_linear_unit = gated;
    config.activation_func = gated ? ActivationFunc::silu : ActivationFunc::gelu;
    config.glu_linear_offset = gated ? 0.5 : 0.0;
    config.add_bias_linear = bias;
    config.init_method_std = 0.5;
    return config;
  }
  /// Fills all biases, which start at 0.
  void set_biases(MLP& mlp) const {
    for (const auto& [name, parameter] : mlp.named_parameters()) {
      if (name.find("bias") == std::string::npos) continue;
      parameter->set_data(tensor(parameter->shape(), 50));
    }
  }
  /// out without fc2's bias, by the definition in fp64.
  static std::vector<double> oracle(const MLP& mlp, const std::vector<double>& x, bool gated,
                                    const std::vector<double>& scale) {
    const StateDict state = mlp.state_dict();
    const auto w1 = values_of(state.at("linear_fc1.weight"));
    const std::int64_t width = gated ? 12 : 6;
    std::vector<double> h = exact_product(x, w1, 3, width, 4).values;
    if (state.contains("linear_fc1.bias")) {
      const auto b1 = values_of(state.at("linear_fc1.bias"));
      for (std::size_t i = 0; i < h.size(); ++i) h[i] += b1[i % b1.size()];
    }
    std::vector<double> a;
    for (std::size_t t = 0; t < 3; ++t) {
      for (std::size_t c = 0; c < 6; ++c) {
        const double v = h[t * static_cast<std::size_t>(width) + c];
        const double act = gated ? v / (1.0 + std::exp(-v)) * (h[t * 12 + 6 + c] + 0.5)
                                 : 0.5 * v * (1.0 + std::erf(v / std::sqrt(2.0)));
        a.push_back(act * (scale.empty() ? 1.0 : scale[t]));
      }
    }
    return exact_product(a, values_of(state.at("linear_fc2.weight")), 3, 4, 6).values;
  }
};

// fp32 with sums of at most 6 terms of order one: 1e-5 is ten times the bound 8·6·2^-24·4.
constexpr double kTolerance = 1e-5;

// labels: MLP
TEST_F(MlpTest, EqualsTheDefinition) {
  for (const bool gated : {false, true}) {
    for (const bool bias : {false, true}) {
      MLP mlp(make_config(config_of(gated, bias)), local_parts());
      set_biases(mlp);
      const Tensor x = tensor({3, 1, 4}, 1);
      const auto [out, out_bias] = mlp.forward(x);
      EXPECT_EQ(out.shape(), (Shape{3, 1, 4}));
      EXPECT_EQ(out_bias.has_value(), bias);
      EXPECT_TRUE(close(oracle(mlp, values_of(x), gated, {}), values_of(out.detach()), kTolerance,
                        kTolerance));
    }
  }
}

// labels: MLP
TEST_F(MlpTest, APerTokenScaleCoversActivationAndBias) {
  const Tensor scale = leaf({3, 1}, 7);
  for (const bool bias : {false, true}) {
    MLP mlp(make_config(config_of(true, bias)), local_parts());
    set_biases(mlp);
    const Tensor x = tensor({3, 1, 4}, 1);
    const auto [out, out_bias] = mlp.forward(x, scale);
    EXPECT_FALSE(out_bias.has_value());
    const std::vector<double> s = values_of(scale.detach());
    std::vector<double> expected = oracle(mlp, values_of(x), true, s);
    if (bias) {
      const auto b = values_of(mlp.state_dict().at("linear_fc2.bias"));
      for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += b[i % 4] * s[i / 4];
    }
    EXPECT_TRUE(close(expected, values_of(out.detach()), kTolerance, kTolerance));
    autograd::backward(autograd::sum(out));
    EXPECT_EQ(autograd::grad_of(scale).shape(), (Shape{3, 1}));
    EXPECT_EQ(mlp.forward(tensor({0, 1, 4}, 1), tensor({0, 1}, 1)).first.shape(), (Shape{0, 1, 4}));
  }
}

// labels: MLP D3
TEST_F(MlpTest, GatedFc1IsTwiceAsWideWithStrideTwo) {
  MLP mlp(make_config(config_of(true, false)), local_parts());
  const auto& fc1 = dynamic_cast<ColumnParallelLinear&>(*mlp.linear_fc1);
  EXPECT_EQ(fc1.out_features, 12);
  EXPECT_EQ(fc1.weight.partition_stride, 2);
  EXPECT_EQ(dynamic_cast<RowParallelLinear&>(*mlp.linear_fc2).in_features, 6);
  MLP expert(make_config(config_of(false, false)), local_parts(), true, 8, 10);
  EXPECT_EQ(dynamic_cast<ColumnParallelLinear&>(*expert.linear_fc1).weight.shape(), (Shape{10, 8}));
}

// labels: MLP D42
TEST_F(MlpTest, BadArgumentsAreRefused) {
  const auto config = make_config(config_of(false, false));
  EXPECT_TRUE(throws<ValueError>([&] { MLP(config, local_parts(), true); }, {"ffn_hidden_size"}));
  EXPECT_TRUE(throws<ValueError>([&] { MLP(config, MLPSubmodules{}); }, {"linear_fc1"}));
  MLPSubmodules wrong = local_parts();
  wrong.linear_fc1 = ModuleSpec(module_type<IdentityOp>());
  EXPECT_TRUE(throws<TypeError>([&] { MLP(config, wrong); }, {"IdentityOp"}));
  TransformerConfig clamped = config_of(true, false);
  clamped.activation_func_clamp_value = 7.0;
  EXPECT_TRUE(throws<NotImplementedError>([&] { MLP(make_config(clamped), local_parts()); },
                                          {"activation_func_clamp_value"}));
  TransformerConfig fused = config_of(false, false);
  fused.bias_activation_fusion = true;
  MLP plain(make_config(fused), local_parts());
  EXPECT_TRUE(throws<AssertionError>([&] { (void)plain.forward(tensor({1, 1, 4}, 1)); }, {"bias"}));
  fused.gated_linear_unit = true;
  MLP gated(make_config(fused), local_parts());
  EXPECT_NO_THROW((void)gated.forward(tensor({1, 1, 4}, 1)));
}

// labels: MLP sharded_state_dict
TEST_F(MlpTest, AGatedFc1IsSavedAsGateAndUp) {
  MLP mlp(make_config(config_of(true, true)), local_parts(), false, {}, {}, testing::fake_group(2, 1));
  const ShardedStateDict dict = mlp.sharded_state_dict("mlp.", {{0, 3, 5}});
  for (const char* leaf_name : {"weight", "bias"}) {
    const auto& factory =
        std::get<ShardedTensorFactory>(dict.at(std::string("mlp.linear_fc1.") + leaf_name));
    const std::vector<ShardedTensor> shards = factory.build();
    ASSERT_EQ(shards.size(), 2u);
    for (std::int64_t part = 0; part < 2; ++part) {
      const ShardedTensor& shard = shards[static_cast<std::size_t>(part)];
      EXPECT_EQ(shard.key, factory.key);
      EXPECT_EQ(shard.local_shape[0], 3);
      EXPECT_EQ(shard.global_shape[0], 5);     // layers
      EXPECT_EQ(shard.global_offset[0], 3);    // this layer
      EXPECT_EQ(shard.global_shape[1], 12);    // gate and up of both ranks
      EXPECT_EQ(shard.global_offset[1], 3 + 6 * part);  // (rank, 2t) and (rank + t, 2t)
      EXPECT_EQ(shard.prepend_axis_num, 1);
    }
  }
  EXPECT_EQ(std::get<ShardedTensor>(dict.at("mlp.linear_fc2.weight")).global_offset, (Shape{3, 0, 3}));
  EXPECT_TRUE(std::holds_alternative<ShardedObject>(dict.at("mlp.linear_fc1._extra_state")));
}

}  // namespace
}  // namespace kitchen
