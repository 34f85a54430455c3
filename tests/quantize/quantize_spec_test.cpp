#include "kitchen/formats/quantize_spec.h"

#include "kitchen/base/error.h"
#include "kitchen/formats/quantized_matrix.h"
#include "support/expect_error.h"

#include <cmath>

namespace kitchen {
namespace {

using testing::throws;

// labels: QuantizeSpec
TEST(QuantizeSpec, EverySchemeNameGivesAValidSpecOfItsOwnText) {
  for (const std::string& name : quantize_scheme_names()) {
    EXPECT_NO_THROW(validate(quantize_spec_from_scheme_name(name))) << name;
  }
  const QuantizeSpec spec = quantize_spec_from_scheme_name("b1x128_e4m3_pow2");
  EXPECT_EQ(to_string(spec), "e4m3 1x128 float32_pow2");
  EXPECT_EQ(to_string(quantize_spec_from_scheme_name("nvfp4_t_rht_sr")),
            "e2m1 1x16 nvfp4 stochastic hadamard");
  EXPECT_EQ(to_string(quantize_spec_from_scheme_name("col_e4m3")), "e4m3 allx1 float32");
  EXPECT_EQ(spec, quantize_spec_from_scheme_name("b1x128_e4m3_pow2"));
  EXPECT_NE(spec, quantize_spec_from_scheme_name("b1x128_e4m3_fp32"));
  EXPECT_NE(spec, quantize_spec_from_scheme_name("b1x128_e5m2_pow2"));
}

// labels: QuantizeSpec N10
TEST(QuantizeSpec, TheMxScaleRuleIsPartOfTheText) {
  EXPECT_EQ(to_string(quantize_spec_from_scheme_name("mxfp8_e4m3_row")), "e4m3 1x32 e8m0_roundup");
  EXPECT_EQ(to_string(quantize_spec_from_scheme_name("mxfp8_e4m3_row_ocp")),
            "e4m3 1x32 e8m0_ocp_floor");
}

// labels: QuantizeSpec
TEST(QuantizeSpec, AnUnknownNameIsRefusedWithTheKnownOnes) {
  EXPECT_TRUE(throws<ValueError>([] { (void)quantize_spec_from_scheme_name("tensor_e4m3fnuz"); },
                                 {"'tensor_e4m3fnuz' is no scheme", "mxfp8_e4m3_row"}));
}

// labels: QuantizeSpec
TEST(QuantizeSpec, SpecsThatNoKernelCanFollowAreRefused) {
  using formats::ScaleRule;
  const auto refused = [](const char* scheme, void (*change)(QuantizeSpec&), const char* why) {
    QuantizeSpec spec = quantize_spec_from_scheme_name(scheme);
    change(spec);
    return throws<ValueError>([&] { validate(spec); }, {"'" + to_string(spec) + "'", why});
  };
  EXPECT_TRUE(refused(
      "mxfp8_e4m3_row", [](QuantizeSpec& s) { s.stochastic = true; },
      "stochastic rounding exists for e2m1 only"));
  EXPECT_TRUE(refused(
      "nvfp4_row", [](QuantizeSpec& s) { s.granularity = formats::kBlock1x32; },
      "blocks of 1x16 or 16x16"));
  EXPECT_TRUE(refused(
      "nvfp4_row", [](QuantizeSpec& s) { s.format = formats::kE4M3; }, "wants e2m1 codes"));
  EXPECT_TRUE(refused(
      "int8_row", [](QuantizeSpec& s) { s.granularity = formats::kPerTensor; }, "want blocks"));
  EXPECT_TRUE(refused(
      "mxfp4_row", [](QuantizeSpec& s) { s.granularity = formats::kPerTensor; }, "want blocks"));
  EXPECT_TRUE(refused(
      "int8_row", [](QuantizeSpec& s) { s.rule = ScaleRule::e8m0_roundup; },
      "int8 wants fp32 scales"));
  EXPECT_TRUE(refused(
      "tensor_e4m3", [](QuantizeSpec& s) { s.eps = -1.0f; }, "eps must be 0 or positive"));
  EXPECT_TRUE(refused(
      "tensor_e4m3", [](QuantizeSpec& s) { s.eps = std::nanf(""); }, "eps must be 0 or positive"));
  EXPECT_TRUE(refused(
      "tensor_e4m3",
      [](QuantizeSpec& s) {
        s.granularity = {-1, 32};
      },
      "block sizes must be 0 (whole extent) or positive"));
}

// labels: QuantizedMatrix
TEST(QuantizedMatrix, ShapesOfCodesAndScalesFollowTheGranularity) {
  const auto spec = [](const char* name) { return quantize_spec_from_scheme_name(name); };
  EXPECT_EQ(scale_shape(spec("tensor_e4m3"), {2, 3, 130, 257}), (Shape{2, 3, 1, 1}));
  EXPECT_EQ(scale_shape(spec("b128x128_e4m3_pow2"), {130, 257}), (Shape{2, 3}));
  EXPECT_EQ(scale_shape(spec("mxfp8_e4m3_row"), {130, 257}), (Shape{130, 9}));
  EXPECT_EQ(scale_shape(spec("nvfp4_2d"), {130, 257}), (Shape{130, 17}));
  EXPECT_EQ(scale_shape(spec("mxfp8_e4m3_row"), {0, 64}), (Shape{0, 2}));
  EXPECT_EQ(code_shape(spec("nvfp4_t_rht"), {5, 17}), (Shape{5, 32}));
  EXPECT_EQ(num_slices({2, 3, 4, 5}), 6);
  EXPECT_TRUE(throws<ValueError>([] { (void)num_slices({4}); }, {"[4]", "[rows, cols]"}));
  EXPECT_EQ(scale_dtype(spec("mxfp4_row")), DType::float8_e8m0);
  EXPECT_EQ(scale_dtype(spec("nvfp4_row")), DType::float8_e4m3);
  EXPECT_EQ(code_dtype(formats::kE2M3), DType::uint8);
}

}  // namespace
}  // namespace kitchen
