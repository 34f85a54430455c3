#include "kitchen/extension/kitchen_layer_norm_column_parallel_linear.h"

#include "kitchen/autograd/backward.h"
#include "kitchen/autograd/nn_functions.h"
#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/modules/quantized_operand.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/ops/norm.h"
#include "support/compare.h"
#include "support/expect_error.h"
#include "support/kitchen_layers.h"
#include "support/rank_test.h"

#include <gtest/gtest.h>

#include <functional>

namespace kitchen {
namespace {

using testing::fake_group;
using testing::layer_norm_args;
using testing::linear_recipe;
using testing::same_bits;
using testing::throws;
using testing::values_of;

using Layer = KitchenLayerNormColumnParallelLinear;
constexpr const char* kClass = "KitchenLayerNormColumnParallelLinear";

class KitchenLayerNormLinear : public testing::RankTest {
 protected:
  [[nodiscard]] static std::shared_ptr<Layer> finished(const TransformerConfig& config,
                                                       std::int64_t recipe, std::int64_t in = 6,
                                                       std::int64_t out = 4) {
    auto layer = std::make_shared<Layer>(in, out, layer_norm_args(make_config(config)));
    layer->finish_init(linear_recipe(recipe));
    return layer;
  }
};

// labels: KitchenLayerNormColumnParallelLinear
TEST_F(KitchenLayerNormLinear, SixRefusalsInTheListedOrder) {
  TransformerConfig bad = testing::small_transformer();
  bad.tp_comm_overlap = true;
  bad.symmetric_ar_type = "two_shot";
  bad.use_cpu_initialization = true;
  const auto config = make_config(bad);
  LayerNormColumnParallelLinearArgs a = layer_norm_args(config);
  a.gather_output = true;
  a.is_expert = true;
  a.skip_weight_param_allocation = true;
  const auto build = [&] { Layer(6, 4, a); };
  EXPECT_TRUE(throws<ValueError>(build, {kClass, "gather_output"}));
  a.gather_output = false;
  EXPECT_TRUE(throws<ValueError>(build, {kClass, "is_expert", "MoE"}));
  a.is_expert = false;
  EXPECT_TRUE(throws<ValueError>(build, {kClass, "skip_weight_param_allocation"}));
  a.skip_weight_param_allocation = false;
  EXPECT_TRUE(throws<ValueError>(build, {kClass, "tp_comm_overlap"}));
  config->tp_comm_overlap = false;
  EXPECT_TRUE(throws<ValueError>(build, {kClass, "symmetric_ar_type"}));
  config->symmetric_ar_type.reset();
  EXPECT_TRUE(throws<ValueError>(build, {kClass, "use_cpu_initialization"}));
  config->use_cpu_initialization = false;
  config->delay_wgrad_compute = true;
  EXPECT_TRUE(throws<NotImplementedError>(build, {kClass, "delay_wgrad_compute"}));
  config->delay_wgrad_compute = false;
  config->normalization = "BatchNorm";
  EXPECT_TRUE(throws<ValueError>(build, {"BatchNorm", "RMSNorm"}));
}

// labels: KitchenLayerNormColumnParallelLinear
TEST_F(KitchenLayerNormLinear, EachMissingKeywordIsNamed) {
  const std::vector<std::pair<std::string, std::function<void(LayerNormColumnParallelLinearArgs&)>>>
      cases = {
          {"config", [](auto& a) { a.config = Required<std::shared_ptr<TransformerConfig>>(); }},
          {"init_method", [](auto& a) { a.init_method = Required<InitMethod>(); }},
          {"gather_output", [](auto& a) { a.gather_output = Required<bool>(); }},
          {"bias", [](auto& a) { a.bias = Required<bool>(); }},
          {"skip_bias_add", [](auto& a) { a.skip_bias_add = Required<bool>(); }},
          {"is_expert", [](auto& a) { a.is_expert = Required<bool>(); }}};
  for (const auto& [name, unset] : cases) {
    LayerNormColumnParallelLinearArgs a = layer_norm_args(make_config(testing::small_transformer()));
    a.gather_output = true;
    unset(a);
    EXPECT_TRUE(throws<TypeError>([&] { Layer(6, 4, a); },
                                  {kClass, "missing required keyword argument '" + name + "'"}));
  }
  EXPECT_TRUE(throws<TypeError>([&] { Layer(6, 4, layer_norm_args(nullptr)); }, {"config", "null"}));
}

// labels: KitchenLayerNormColumnParallelLinear D10
TEST_F(KitchenLayerNormLinear, TheGroupCountsNotTheConfig) {
  LayerNormColumnParallelLinearArgs a = layer_norm_args(make_config(testing::small_transformer()));
  a.tp_group = fake_group(2, 1);
  const LogCapture log;
  Layer layer(6, 4, a);
  EXPECT_EQ(layer.tp_size, 2);
  EXPECT_EQ(layer.tp_rank, 1);
  EXPECT_EQ(log.count(LogLevel::warning, "tensor_model_parallel_size"), 1);
  EXPECT_TRUE(layer.named_parameters().empty());
  EXPECT_EQ(layer.repr(), std::string(kClass) + "(uninitialized)");
  layer.finish_init(linear_recipe(2));
  EXPECT_EQ(layer.weight.shape(), (Shape{2, 6}));
  EXPECT_EQ(layer.layer_norm_weight.shape(), (Shape{6}));
  EXPECT_EQ(layer.repr(), std::string(kClass) + "(in_features=6, out_features=2, bias=True, TP=2)");
  Layer quiet(6, 4, layer_norm_args(make_config(testing::small_transformer())));
  EXPECT_EQ(log.count(LogLevel::warning, "tensor_model_parallel_size"), 1);
}

// labels: KitchenLayerNormColumnParallelLinear.finish_init
TEST_F(KitchenLayerNormLinear, ParameterSetsFollowTheNormalization) {
  const auto names = [](const Layer& layer) {
    std::vector<std::string> all;
    for (const auto& [name, parameter] : layer.named_parameters()) all.push_back(name);
    std::sort(all.begin(), all.end());
    return all;
  };
  TransformerConfig config = testing::small_transformer();
  const auto layer_norm = finished(config, 2);
  EXPECT_EQ(names(*layer_norm),
            (std::vector<std::string>{"bias", "layer_norm_bias", "layer_norm_weight", "weight"}));
  EXPECT_EQ(values_of(layer_norm->layer_norm_weight.detach()), (std::vector<double>(6, 1.0)));
  EXPECT_EQ(values_of(layer_norm->layer_norm_bias.detach()), (std::vector<double>(6, 0.0)));
  config.normalization = "RMSNorm";
  config.layernorm_zero_centered_gamma = true;
  const auto rms = finished(config, 2);
  EXPECT_EQ(names(*rms), (std::vector<std::string>{"bias", "layer_norm_weight", "weight"}));
  EXPECT_EQ(values_of(rms->layer_norm_weight.detach()), (std::vector<double>(6, 0.0)));
  EXPECT_TRUE(throws<AssertionError>([&] { rms->finish_init(linear_recipe(2)); }, {"already called"}));
}

// labels: KitchenLayerNormColumnParallelLinear.finish_init parameter_attributes D18 D29
TEST_F(KitchenLayerNormLinear, NormParametersAreReducedUnderSequenceParallelism) {
  TransformerConfig config = testing::small_transformer();
  config.tensor_model_parallel_size = 2;
  config.sequence_parallel = true;
  config.layernorm_zero_centered_gamma = true;
  LayerNormColumnParallelLinearArgs a = layer_norm_args(make_config(config));
  a.tp_group = fake_group(2, 1);
  a.stride = 2;
  Layer layer(6, 4, a);
  layer.finish_init(linear_recipe(2));
  for (const Parameter* p : {&layer.layer_norm_weight, &layer.layer_norm_bias}) {
    EXPECT_TRUE(p->allreduce && p->sequence_parallel && !p->tensor_model_parallel);
  }
  for (const Parameter* p : {&layer.weight, &layer.bias}) {
    EXPECT_TRUE(p->allreduce && !p->sequence_parallel && p->tensor_model_parallel);
    EXPECT_EQ(p->partition_dim, 0);
    EXPECT_EQ(p->partition_stride, 2);
  }
}

// labels: KitchenLayerNormColumnParallelLinear.finish_init D41
TEST_F(KitchenLayerNormLinear, ABufferNameIsRecordedWithoutAWord) {
  LayerNormColumnParallelLinearArgs a = layer_norm_args(make_config(testing::small_transformer()));
  a.tp_comm_buffer_name = "silent_buffer";
  const LogCapture log;
  Layer layer(6, 4, a);
  layer.finish_init(linear_recipe(2));
  EXPECT_EQ(log.count(LogLevel::warning, "silent_buffer"), 0);
  EXPECT_EQ(layer.ub_name, "silent_buffer");
}

// labels: KitchenLayerNormColumnParallelLinear.finish_init D27
TEST_F(KitchenLayerNormLinear, AFailedFinishInitCanBeRepeated) {
  bool fails = true;
  LayerNormColumnParallelLinearArgs a = layer_norm_args(make_config(testing::small_transformer()));
  a.init_method = InitMethod([&](Tensor& w) {
    if (fails) throw ValueError("init refused");
    init_method_constant(3.0f)(w);
  });
  Layer layer(6, 4, a);
  EXPECT_TRUE(throws<AssertionError>([&] { layer.finish_init(std::nullopt); }, {kClass, "\"*\""}));
  EXPECT_TRUE(throws<AssertionError>([&] { layer.finish_init(testing::attention_recipe(1, "p")); },
                                     {kClass, "p", "qlinear_params"}));
  EXPECT_TRUE(throws<ValueError>([&] { layer.finish_init(linear_recipe(2)); }, {"init refused"}));
  EXPECT_FALSE(layer.init_finished);
  EXPECT_TRUE(layer.named_parameters().empty());
  fails = false;
  layer.finish_init(linear_recipe(2));
  EXPECT_EQ(layer.named_parameters().size(), 4u);
}

// labels: KitchenLayerNormColumnParallelLinear.forward
TEST_F(KitchenLayerNormLinear, EqualsNormFollowedByAColumnLayer) {
  for (const char* normalization : {"LayerNorm", "RMSNorm"}) {
    for (const std::int64_t recipe : {1, 2, 6001}) {
      TransformerConfig config = testing::bf16_transformer();
      config.normalization = normalization;
      config.layernorm_epsilon = 0.125;  // large, so that it shows
      const auto fused = finished(config, recipe, 40, 24);
      const bool has_beta = fused->layer_norm_bias.defined();
      fused->layer_norm_weight.set_data(tensor({40}, 7, DType::bfloat16));
      if (has_beta) fused->layer_norm_bias.set_data(tensor({40}, 8, DType::bfloat16));
      KitchenColumnParallelLinear column(40, 24, testing::column_args(fused->config));
      column.finish_init(linear_recipe(recipe));
      const Tensor x = leaf({3, 2, 40}, 1, DType::bfloat16);
      const Tensor x2 = leaf({3, 2, 40}, 1, DType::bfloat16);
      const Tensor gamma = leaf({40}, 7, DType::bfloat16);
      const Tensor beta = has_beta ? leaf({40}, 8, DType::bfloat16) : Tensor();
      const ops::NormOptions norm{modules::norm_kind_from_string(normalization), 0.125f, false};
      const Tensor y = fused->forward(x).first;
      const Tensor y2 = column.forward(autograd::norm(x2, gamma, beta, norm)).first;
      const Tensor dy = tensor({3, 2, 24}, 2, DType::bfloat16);
      autograd::backward(y, dy);
      autograd::backward(y2, dy);
      EXPECT_TRUE(same_bits(y2.detach(), y.detach()));
      EXPECT_TRUE(same_bits(autograd::grad_of(x2), autograd::grad_of(x)));
      EXPECT_TRUE(same_bits(autograd::grad_of(gamma), fused->layer_norm_weight.grad()));
      EXPECT_TRUE(same_bits(column.weight.grad(), fused->weight.grad()));
      EXPECT_TRUE(same_bits(column.bias.grad(), fused->bias.grad()));
      EXPECT_TRUE(!has_beta || same_bits(autograd::grad_of(beta), fused->layer_norm_bias.grad()));
    }
  }
}

/// Scale of the last observed "x/fprop".
struct XScale : modules::OperandObserver {
  Tensor scale_inv;
  Tensor amax;
  void on_quantized(const modules::OperandInfo& info, const Tensor& /*source*/,
                    const QuantizedMatrix& quantized) override {
    if (info.operand != "x" || info.product != "fprop") return;
    scale_inv = quantized.scale_inv;
    amax = quantized.amax;
  }
};

// labels: KitchenLayerNormColumnParallelLinear.forward N23
TEST_F(KitchenLayerNormLinear, TheAmaxIsTakenOnTheRoundedNormOutput) {
  TransformerConfig config = testing::bf16_transformer();
  config.normalization = "RMSNorm";
  const auto fused = finished(config, 2, 4, 4);
  KitchenColumnParallelLinear column(4, 4, testing::column_args(fused->config));
  column.finish_init(linear_recipe(2));
  // RMS norm of a row ±1 is ±1/sqrt(1 + eps) in fp32, just below 1; gamma 1.0078125 makes it 1.00780... which
  // bfloat16 (steps of 2^-7) stores as 1.0078125.
  const std::vector<double> gamma(4, 1.0078125);
  fused->layer_norm_weight.set_data(testing::tensor_of(context, {4}, DType::bfloat16, gamma));
  const Tensor x = testing::tensor_of(context, {1, 1, 4}, DType::bfloat16, {1, -1, 1, -1});
  const autograd::NoGradGuard guard;
  XScale fused_scale;
  XScale unfused_scale;
  {
    const modules::OperandObserverScope scope(&fused_scale);
    (void)fused->forward(x);
  }
  {
    const modules::OperandObserverScope scope(&unfused_scale);
    const ops::NormOptions norm{ops::NormKind::rms_norm, 1e-5f, false};
    (void)column.forward(ops::norm_forward(x, fused->layer_norm_weight.detach(), {}, norm).y);
  }
  EXPECT_EQ(values_of(fused_scale.amax), (std::vector<double>{1.0078125}));
  EXPECT_TRUE(same_bits(unfused_scale.scale_inv, fused_scale.scale_inv));
  EXPECT_TRUE(same_bits(unfused_scale.amax, fused_scale.amax));
}

// labels: KitchenLayerNormColumnParallelLinear.forward G13
TEST_F(KitchenLayerNormLinear, AnInputOfAnyStridesGivesTheNumbersOfItsCopy) {
  const auto layer = finished(testing::small_transformer(), 2, 4, 3);
  const Tensor x = tensor({4, 4, 4, 4}, 1).permute({2, 3, 1, 0});
  const Tensor copy = ops::contiguous(x);
  const autograd::NoGradGuard guard;
  EXPECT_FALSE(x.is_contiguous());
  EXPECT_TRUE(same_bits(layer->forward(copy).first, layer->forward(x).first));
}

// labels: KitchenLayerNormColumnParallelLinear.forward G15
TEST_F(KitchenLayerNormLinear, ReturnRulesAndRefusals) {
  LayerNormColumnParallelLinearArgs a = layer_norm_args(make_config(testing::small_transformer()));
  a.skip_bias_add = true;
  Layer layer(6, 4, a);
  EXPECT_TRUE(layer.kitchen_return_bias);
  EXPECT_TRUE(throws<AssertionError>([&] { (void)layer.forward(tensor({1, 6}, 1)); },
                                     {kClass, "finish_init"}));
  layer.finish_init(linear_recipe(2));
  EXPECT_TRUE(throws<ValueError>([&] { (void)layer.forward(tensor({1, 5}, 1)); }, {kClass, "5", "6"}));
  EXPECT_TRUE(layer.is_first_microbatch);
  const auto [y, bias] = layer.forward(tensor({2, 1, 6}, 1));
  EXPECT_FALSE(layer.is_first_microbatch);
  EXPECT_EQ(bias->id(), layer.bias.id());
  EXPECT_EQ(layer.forward(tensor({0, 1, 6}, 1)).first.shape(), (Shape{0, 1, 4}));
}

// labels: KitchenLayerNormColumnParallelLinear.sharded_state_dict
TEST_F(KitchenLayerNormLinear, ShardsSplitTheLinearAndReplicateTheNorm) {
  LayerNormColumnParallelLinearArgs a = layer_norm_args(make_config(testing::small_transformer()));
  a.tp_group = fake_group(2, 1);
  Layer layer(6, 4, a);
  EXPECT_TRUE(throws<AssertionError>([&] { (void)layer.sharded_state_dict(); }, {kClass, "finish_init"}));
  layer.finish_init(linear_recipe(2));
  const ShardedStateDict dict = layer.sharded_state_dict("qkv.");
  EXPECT_EQ(std::get<ShardedTensor>(dict.at("qkv.weight")).global_offset, (Shape{2, 0}));
  EXPECT_EQ(std::get<ShardedTensor>(dict.at("qkv.bias")).global_shape, (Shape{4}));
  for (const char* name : {"qkv.layer_norm_weight", "qkv.layer_norm_bias"}) {
    EXPECT_EQ(std::get<ShardedTensor>(dict.at(name)).global_shape, (Shape{6}));
    EXPECT_EQ(std::get<ShardedTensor>(dict.at(name)).replica_id, (ReplicaId{0, 1, 0}));
  }
  EXPECT_TRUE(std::holds_alternative<ShardedObject>(dict.at("qkv._extra_state")));
}

// labels: KitchenLayerNormColumnParallelLinear modules.Linear
TEST_F(KitchenLayerNormLinear, ResetKeepsTheNormParametersToo) {
  TransformerConfig config = testing::small_transformer();
  config.init_model_with_meta_device = true;
  const auto layer = finished(config, 2);
  const Tensor gamma = layer->layer_norm_weight;
  EXPECT_TRUE(gamma.context()->is_meta());
  layer->reset_parameters();
  EXPECT_EQ(layer->layer_norm_weight.id(), gamma.id());
  EXPECT_EQ(values_of(gamma.detach()), (std::vector<double>(6, 1.0)));
}

}  // namespace
}  // namespace kitchen
