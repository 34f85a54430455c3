#include "kitchen/modules/linear.h"

#include "kitchen/autograd/backward.h"
#include "kitchen/autograd/recompute.h"
#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/base/rng.h"
#include "kitchen/modules/init_methods.h"
#include "kitchen/ops/quantized_gemm.h"
#include "kitchen/parallel/rng_tracker.h"
#include "kitchen/recipes/predefined.h"
#include "kitchen/recipes/quantize_spec_of.h"
#include "support/compare.h"
#include "support/expect_error.h"
#include "support/values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace kitchen::modules {
namespace {

using testing::same_bits;
using testing::throws;

/// A layer of 32 inputs and 16 outputs whose recipe is named, and a training step of it.
struct Fixture {
  explicit Fixture(const std::string& recipe, const std::string& path = "layer") {
    set_default_context(context);
    model_parallel_cuda_manual_seed(7);
    LinearOptions options;
    options.in_features = 32;
    options.out_features = 16;
    options.bias = false;
    options.logical_name = path;
    options.init_method = init_method_constant(0.5f);
    options.qlinear_params = get_qlinear_params_from_recipe_name(recipe);
    layer.init(options);
  }

  [[nodiscard]] Tensor x(float factor = 1.0f) const {
    std::vector<double> values = testing::grid_values(8 * 32, 3);
    for (double& value : values) value *= static_cast<double>(factor);
    Tensor tensor = testing::tensor_of(context, {8, 32}, DType::float32, values);
    autograd::set_requires_grad(tensor);
    return tensor;
  }
  [[nodiscard]] Tensor g() const {
    return testing::tensor_of(context, {8, 16}, DType::float32, testing::grid_values(8 * 16, 4));
  }

  /// @returns the gradient of the input.
  Tensor step(float factor = 1.0f, std::optional<bool> first = std::nullopt) {
    const Tensor input = x(factor);
    autograd::backward(layer.forward(input, first).first, g());
    return autograd::grad_of(input);
  }

  [[nodiscard]] std::vector<std::uint8_t> state() const {
    return layer.get_extra_state().to_vector<std::uint8_t>();
  }
  /// Float `index` of the state: scale of x, its history, the same of w and of g.
  [[nodiscard]] float number(std::size_t index) const {
    float value;
    std::memcpy(&value, state().data() + 4 + index * sizeof value, sizeof value);
    return value;
  }

  ContextPtr context = testing::poisoned_context();
  Linear layer;
};

constexpr std::size_t kW = 1025;  // scale and window of x lie before w's
constexpr std::size_t kG = 2 * 1025;

// labels: modules.OperandQuantizer fp8_delayed
TEST(DelayedQuantizers, ScalesFollowFromTheAmaxOfTheStepBefore) {
  Fixture f("fp8_delayed");
  const auto amax = [](const Tensor& tensor) {
    float largest = 0.0f;
    for (const float v : tensor.detach().to_vector<float>())
      largest = std::max(largest, std::fabs(v));
    return largest;
  };
  EXPECT_EQ(f.number(0), 1.0f);
  (void)f.step(0.25f);
  (void)f.step(0.5f);  // a second micro-batch: its amax is larger
  EXPECT_EQ(f.number(0), 1.0f);
  EXPECT_EQ(f.number(1), amax(f.x(0.5f)));
  f.layer.finish_quantization_step();
  EXPECT_EQ(f.number(0), 448.0f / amax(f.x(0.5f)));
  EXPECT_EQ(f.number(kW), 448.0f / 0.5f);
  EXPECT_EQ(f.number(kG), 57344.0f / amax(f.g()));
}

// labels: modules.OperandQuantizer fp8_delayed
TEST(DelayedQuantizers, ValidationAndTheFirstRunOfARecomputedSegmentLeaveTheHistory) {
  Fixture f("fp8_delayed");
  const std::vector<std::uint8_t> before = f.state();
  {
    const autograd::NoGradGuard guard;
    (void)f.layer.forward(f.x(), std::nullopt);
  }
  EXPECT_EQ(f.state(), before);
  Fixture plain("fp8_delayed");
  const Tensor expected = plain.step();
  const Tensor input = f.x();
  const Tensor y = autograd::recompute(
      [&](const std::vector<Tensor>& in) { return f.layer.forward(in[0], std::nullopt).first; },
      {input});
  EXPECT_EQ(f.state(), before);
  autograd::backward(y, f.g());
  EXPECT_TRUE(same_bits(expected, autograd::grad_of(input)));
  EXPECT_EQ(f.state(), plain.state());
}

// labels: modules.OperandQuantizer fp8_delayed
TEST(DelayedQuantizers, WeightThatValidationCachedStillEntersTheHistory) {
  Fixture f("fp8_delayed");
  {
    const autograd::NoGradGuard guard;
    (void)f.layer.forward(f.x(), true);
  }
  EXPECT_EQ(f.number(kW + 1), 0.0f);
  // An input that wants no gradient: backward makes no copy of the weight that could be noted
  // instead.
  (void)f.layer.forward(f.x().detach(), false);
  EXPECT_EQ(f.number(kW + 1), 0.5f);
}

// labels: modules.OperandQuantizer Linear.extra_state K19 K21
TEST(DelayedQuantizers, StateComesBackAndWhatIsNoneIsRefusedBeforeAnythingChanges) {
  Fixture f("fp8_delayed");
  (void)f.step();
  f.layer.finish_quantization_step();
  const StateDict saved = f.layer.state_dict();
  const std::vector<std::uint8_t> bytes = f.state();
  Fixture g("fp8_delayed");
  g.layer.set_extra_state(f.layer.get_extra_state());
  EXPECT_EQ(g.state(), bytes);
  std::vector<std::uint8_t> newer = bytes;
  newer[3] = 99;
  std::vector<std::uint8_t> cut(bytes.begin(), bytes.end() - 4);
  const std::vector<std::pair<std::vector<std::uint8_t>, const char*>> bad{
      {newer, "version 99"}, {cut, "window or operands differ"}, {{1, 2}, "no quantizer state"}};
  for (const auto& [wrong, message] : bad) {
    StateDict state;
    state.set("weight", testing::tensor_of(g.context, {16, 32}, DType::float32,
                                           testing::grid_values(16 * 32, 9)));
    state.set("_extra_state",
              Tensor::from_vector(g.context, {static_cast<std::int64_t>(wrong.size())}, wrong));
    EXPECT_TRUE(throws<RuntimeError>([&] { g.layer.load_state_dict(state); }, {message}));
    EXPECT_EQ(g.layer.weight.detach().to_vector<float>()[0], 0.5f);
    EXPECT_EQ(g.state(), bytes);
  }
  StateDict bf16;
  bf16.set("weight", g.layer.weight.detach());
  bf16.set("_extra_state", Tensor::empty(g.context, {0}, DType::uint8));
  const LogCapture log;
  g.layer.load_state_dict(bf16);
  EXPECT_EQ(log.count(LogLevel::info, "no quantizer state for 1 layers"), 1);
  EXPECT_EQ(g.state(), bytes);
}

// labels: modules.OperandQuantizer ruling-6.15
TEST(StochasticQuantizers, LayersAndUsesDrawDifferentNoiseAndTheCountComesBack) {
  Fixture f("nvfp4_rht_2d_sr");
  const Tensor first = f.step();
  const Tensor saved = f.layer.get_extra_state();
  const Tensor second = f.step();
  EXPECT_FALSE(same_bits(first, second));
  Fixture other("nvfp4_rht_2d_sr", "other");
  EXPECT_FALSE(same_bits(first, other.step()));
  Fixture again("nvfp4_rht_2d_sr");
  EXPECT_TRUE(same_bits(first, again.step()));
  Fixture resumed("nvfp4_rht_2d_sr");
  resumed.layer.set_extra_state(saved);
  EXPECT_TRUE(same_bits(second, resumed.step()));
}

// labels: modules.OperandQuantizer ruling-6.15
TEST(StochasticQuantizers, SeedIsThatOfTheRunAndTheModulePath) {
  Fixture f("nvfp4_rht_2d_sr");
  const QLinearParams& params = *f.layer.options().qlinear_params;
  (void)f.step();
  const Tensor dx = f.step();  // the second use
  ops::QuantizeCall call;
  call.rounding = {splitmix64(7 ^ fnv1a64("layer")), 1, 0};
  const QuantizedMatrix g = ops::quantize(f.g(), quantize_spec_of(params.g_params, false), call);
  const QuantizedMatrix w = ops::quantize(f.layer.weight.detach().transpose(0, 1),
                                          quantize_spec_of(params.w_params, true));
  EXPECT_TRUE(same_bits(ops::quantized_gemm(g, w, DType::float32), dx));
}

}  // namespace
}  // namespace kitchen::modules
