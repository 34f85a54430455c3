#include "kitchen/formats/quantize_spec.h"

#include "kitchen/base/error.h"
#include "kitchen/formats/quantized_matrix.h"

#include <gtest/gtest.h>

namespace kitchen {
namespace {

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
  try {
    (void)quantize_spec_from_scheme_name("tensor_e9m9");
    FAIL() << "accepted";
  } catch (const ValueError& error) {
    EXPECT_NE(std::string(error.what()).find("tensor_e9m9"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("mxfp8_e4m3_row"), std::string::npos);
  }
}

// labels: QuantizeSpec
TEST(QuantizeSpec, SpecsThatNoKernelCanFollowAreRefused) {
  QuantizeSpec spec = quantize_spec_from_scheme_name("mxfp8_e4m3_row");
  spec.stochastic = true;
  EXPECT_THROW(validate(spec), ValueError);
  spec = quantize_spec_from_scheme_name("nvfp4_row");
  spec.granularity = formats::kBlock1x32;
  EXPECT_THROW(validate(spec), ValueError);
  spec = quantize_spec_from_scheme_name("int8_row");
  spec.granularity = formats::kPerTensor;
  EXPECT_THROW(validate(spec), ValueError);
  spec.granularity = formats::kPerRow;
  spec.rule = formats::ScaleRule::e8m0_roundup;
  EXPECT_THROW(validate(spec), ValueError);
  spec = quantize_spec_from_scheme_name("tensor_e4m3");
  spec.eps = -1.0f;
  EXPECT_THROW(validate(spec), ValueError);
  spec.eps = 0.0f;
  spec.granularity = {-1, 32};
  EXPECT_THROW(validate(spec), ValueError);
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
  EXPECT_THROW((void)num_slices({4}), ValueError);
  EXPECT_EQ(scale_dtype(spec("mxfp4_row")), DType::float8_e8m0);
  EXPECT_EQ(scale_dtype(spec("nvfp4_row")), DType::float8_e4m3);
  EXPECT_EQ(code_dtype(formats::kE2M3), DType::uint8);
}

}  // namespace
}  // namespace kitchen
