#include "kitchen/recipes/quantizer_params.h"

#include "kitchen/base/error.h"
#include "support/expect_error.h"

namespace kitchen {
namespace {

using testing::throws;

// labels: QuantizerParams recipes.validation
TEST(QuantizerParams, SettingsThatTheScalingDoesNotReadAreRefused) {
  const auto refused = [](const char* format, Scaling scaling, void (*change)(QuantizerParams&),
                          const std::vector<std::string>& phrases) {
    QuantizerParams params;
    params.format = format;
    params.scaling = scaling;
    validate_quantizer_params(params, "x");
    change(params);
    return throws<ValueError>([&] { validate_quantizer_params(params, "x"); }, phrases);
  };
  const auto pow2 = [](QuantizerParams& p) { p.pow2 = true; };
  const auto eps = [](QuantizerParams& p) { p.eps = 1e-4; };
  for (const Scaling scaling : {Scaling::mx32, Scaling::nvfp4_1d, Scaling::nvfp4_2d}) {
    EXPECT_TRUE(refused("e2m1", scaling, pow2, {"x: pow2", to_string(scaling), "tensor_current"}));
    EXPECT_TRUE(refused("e2m1", scaling, eps, {"x: eps", to_string(scaling), "tensor_current"}));
  }
  EXPECT_TRUE(refused("bf16", Scaling::none, pow2, {"x: pow2", "none"}));
  EXPECT_TRUE(refused("e4m3", Scaling::tensor_delayed, eps, {"x: eps", "tensor_delayed"}));
  EXPECT_TRUE(refused("e4m3", Scaling::row, [](QuantizerParams& p) { p.window = 16; },
                      {"x: window", "row", "only with tensor_delayed"}));
  EXPECT_TRUE(refused("e4m3", Scaling::row, [](QuantizerParams& p) { p.margin = 1; },
                      {"x: margin", "row", "only with tensor_delayed"}));
  EXPECT_TRUE(refused("e4m3", Scaling::row, [](QuantizerParams& p) { p.algorithm = "most_recent"; },
                      {"x: algorithm", "row", "only with tensor_delayed"}));
  EXPECT_TRUE(refused("e4m3", Scaling::row,
                      [](QuantizerParams& p) { p.mx_scale = MxScaleRule::ocp_floor; },
                      {"x: mx_scale ocp_floor", "row", "only with mx32"}));
  EXPECT_TRUE(refused("e4m3", Scaling::block1x128,
                      [](QuantizerParams& p) {
                        p.convention = BlockConvention::deepgemm;
                        p.eps = 1e-4;
                      },
                      {"x: eps", "deepgemm"}));
  EXPECT_TRUE(
      refused("bf16", Scaling::none, [](QuantizerParams& p) { p.rht = true; }, {"x: rht", "none"}));
  EXPECT_TRUE(refused("e4m3", Scaling::tensor_delayed, [](QuantizerParams& p) { p.window = 0; },
                      {"x: window is 0", "at least 1"}));
  EXPECT_TRUE(refused("e4m3", Scaling::tensor_delayed,
                      [](QuantizerParams& p) { p.algorithm = "mean"; },
                      {"x: algorithm is \"mean\"", "most_recent"}));
}

}  // namespace
}  // namespace kitchen
