#include "kitchen/ops/delayed_scaling.h"

#include "kitchen/base/error.h"
#include "kitchen/ops/quantize.h"
#include "support/expect_error.h"
#include "support/golden_file.h"
#include "support/values.h"

#include <gtest/gtest.h>

namespace kitchen {
namespace {

using testing::big_endian_bytes;
using testing::golden;
using testing::hex8;
using testing::throws;

Tensor scalar(const ContextPtr& context, float value) {
  return Tensor::from_vector(context, {1}, std::vector<float>{value});
}

// labels: ops.delayed_scaling golden
TEST(GoldenDelayedScaling, EveryStepOfEveryTraceIsMatchedByteForByte) {
  const ContextPtr context = testing::poisoned_context();
  const Tensor one = Tensor::from_vector(context, {1, 1}, std::vector<float>{1.0f});
  std::size_t steps = 0;
  for (const auto& trace : golden().at("delayed_scaling").at("cases")) {
    const std::int64_t window = trace.at("window");
    SCOPED_TRACE(trace.at("algo").get<std::string>() + " " + trace.at("margin").dump());
    ops::DelayedScaling rule;
    rule.margin = trace.at("margin");
    rule.most_recent = trace.at("algo") == "most_recent";
    const Tensor history = Tensor::zeros(context, {window}, DType::float32);
    const Tensor scale =
        testing::from_bits32(context, {1}, testing::hex32(trace.at("initial_scale")));
    for (const auto& step : trace.at("steps")) {
      ops::record_amax(testing::from_bits32(context, {1}, testing::hex32(step.at(0))), history);
      ops::update_delayed_scale(history, scale, rule);
      EXPECT_EQ(big_endian_bytes(history), hex8(step.at(1)));
      EXPECT_EQ(big_endian_bytes(scale), hex8(step.at(2)));
      ops::QuantizeCall call;
      call.scale = scale;
      const QuantizedMatrix q =
          ops::quantize(one, quantize_spec_from_scheme_name("tensor_e4m3"), call);
      EXPECT_EQ(big_endian_bytes(q.scale_inv), hex8(step.at(3)));
      ++steps;
    }
  }
  EXPECT_EQ(steps, 4u * 8u);
}

// labels: ops.delayed_scaling
TEST(DelayedScaling, LargestAmaxOfAStepCountsAndAWindowOfOneKeepsNothing) {
  const ContextPtr context = testing::poisoned_context();
  const Tensor history = Tensor::zeros(context, {1}, DType::float32);
  const Tensor scale = scalar(context, 1.0f);
  for (const float amax : {2.0f, 7.0f, 0.5f}) ops::record_amax(scalar(context, amax), history);
  ops::update_delayed_scale(history, scale, {});
  EXPECT_EQ(scale.to_vector<float>()[0], 64.0f);  // 448 / 7
  EXPECT_EQ(history.to_vector<float>()[0], 0.0f);
  ops::update_delayed_scale(history, scale, {});  // a step without any use keeps the scale
  EXPECT_EQ(scale.to_vector<float>()[0], 64.0f);
}

// labels: ops.delayed_scaling
TEST(DelayedScaling, WrongShapesAndDtypesAreRefused) {
  const ContextPtr context = testing::poisoned_context();
  const Tensor history = Tensor::zeros(context, {4}, DType::float32);
  const Tensor one = scalar(context, 1.0f);
  EXPECT_TRUE(throws<ValueError>([&] { ops::record_amax(history, history); }, {"amax", "[4]"}));
  EXPECT_TRUE(throws<TypeError>(
      [&] { ops::record_amax(Tensor::zeros(context, {1}, DType::bfloat16), history); }, {"amax"}));
  EXPECT_TRUE(throws<ValueError>(
      [&] { ops::update_delayed_scale(Tensor::zeros(context, {0}, DType::float32), one, {}); },
      {"history", "window"}));
  EXPECT_TRUE(throws<ValueError>([&] { ops::update_delayed_scale(history, history, {}); },
                                 {"scale", "[4]"}));
}

}  // namespace
}  // namespace kitchen
