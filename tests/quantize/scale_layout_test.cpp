#include "kitchen/ops/scale_layout.h"

#include "kitchen/base/error.h"
#include "quantize/gemm_oracle.h"
#include "support/expect_error.h"

#include <gtest/gtest.h>

namespace kitchen {
namespace {

using formats::ScaleLayout;
using testing::poisoned_context;
using testing::quantize_as;
using testing::random_matrix;
using testing::same_bits;
using testing::throws;

// labels: ops.arrange_scales G23
TEST(ScaleLayout, LinesAreStoredWithTheRowsInsideAndPaddedToFour) {
  const ContextPtr context = poisoned_context();
  const QuantizedMatrix x = quantize_as(random_matrix(context, {5, 257}, 1), "b1x128_e4m3_fp32");
  const ops::LaidOutScales laid_out = ops::arrange_scales(x);
  EXPECT_EQ(laid_out.layout, ScaleLayout::k_major);
  EXPECT_EQ(laid_out.values.shape(), (Shape{1, 3 * 8}));
  const std::vector<float> from = x.scale_inv.to_vector<float>();
  const std::vector<float> to = laid_out.values.to_vector<float>();
  for (std::size_t k = 0; k < 3; ++k) {
    for (std::size_t m = 0; m < 8; ++m) {
      EXPECT_EQ(to[k * 8 + m], m < 5 ? from[m * 3 + k] : 0.0f) << k << " " << m;
    }
  }
}

// labels: ops.arrange_scales
TEST(ScaleLayout, SquaresKeepTheirRowsAndPadThem) {
  const QuantizedMatrix x =
      quantize_as(random_matrix(poisoned_context(), {130, 257}, 1), "b128x128_e4m3_pow2");
  const ops::LaidOutScales laid_out = ops::arrange_scales(x);
  EXPECT_EQ(laid_out.layout, ScaleLayout::padded_rows);
  const std::vector<float> from = x.scale_inv.to_vector<float>();
  EXPECT_EQ(laid_out.values.to_vector<float>(),
            (std::vector<float>{from[0], from[1], from[2], 0, from[3], from[4], from[5], 0}));
}

// labels: ops.arrange_scales ops.restore_scales golden
TEST(ScaleLayout, EveryBlockSchemeComesBackBitByBit) {
  const ContextPtr context = poisoned_context();
  for (const std::string& scheme : quantize_scheme_names()) {
    const QuantizeSpec spec = quantize_spec_from_scheme_name(scheme);
    if (spec.granularity.cols == 0) {
      EXPECT_TRUE(throws<ValueError>([&] { (void)ops::gemm_scale_layout(spec); },
                                     {to_string(spec), "no blocks"}));
      continue;
    }
    for (const Shape& shape : {Shape{1, 1}, Shape{130, 257}, Shape{0, 64}, Shape{2, 33, 130}}) {
      const QuantizedMatrix x = quantize_as(Tensor::zeros(context, shape, DType::bfloat16), scheme);
      // Every scale another pattern, so that a swapped pair shows.
      auto* bytes = static_cast<std::uint8_t*>(x.scale_inv.raw_data());
      for (std::int64_t i = 0; i < x.scale_inv.nbytes(); ++i) {
        bytes[i] = static_cast<std::uint8_t>(i * 37 % 251);
      }
      const Tensor back = ops::restore_scales(ops::arrange_scales(x), spec);
      EXPECT_TRUE(same_bits(x.scale_inv, back)) << scheme << " " << to_string(shape);
    }
  }
}

// labels: ops.arrange_scales golden
TEST(ScaleLayout, ByteScalesFollowTheTilesOfTheGoldenFile) {
  const auto& entry = testing::golden().at("swizzle_128x4");
  const QuantizedMatrix x =
      quantize_as(Tensor::zeros(poisoned_context(), {130, 160}, DType::float32), "mxfp8_e4m3_row");
  for (std::int64_t i = 0; i < 130 * 5; ++i) {
    static_cast<std::uint8_t*>(x.scale_inv.raw_data())[i] = static_cast<std::uint8_t>(i % 251);
  }
  const ops::LaidOutScales laid_out = ops::arrange_scales(x);
  EXPECT_EQ(laid_out.layout, ScaleLayout::tiles_128x4);
  EXPECT_EQ(testing::fnv_of(laid_out.values.to_vector<std::uint8_t>()),
            entry.at("out_fnv").get<std::string>());
}

// labels: ops.restore_scales ops.quantized_gemm G23
TEST(ScaleLayout, AWrongLayoutIsRefusedWithBothOrders) {
  const ContextPtr context = poisoned_context();
  QuantizedMatrix a = quantize_as(random_matrix(context, {128, 512}, 1), "b1x128_e4m3_pow2");
  const QuantizedMatrix b =
      quantize_as(random_matrix(context, {256, 512}, 2), "b128x128_e4m3_pow2");
  ops::LaidOutScales laid_out = ops::arrange_scales(a);
  EXPECT_TRUE(throws<ValueError>([&] { (void)ops::restore_scales(laid_out, b.spec); },
                                 {"k_major", "padded_rows", "arrange_scales"}));
  laid_out.logical_shape = {128, 5};
  EXPECT_TRUE(throws<ValueError>([&] { (void)ops::restore_scales(laid_out, a.spec); },
                                 {"[1, 512]", "[1, 640]"}));
  const Tensor row_major = a.scale_inv;
  a.scale_inv = laid_out.values.view({4, 128});
  EXPECT_TRUE(throws<ValueError>([&] { (void)ops::quantized_gemm(a, b, DType::float32); },
                                 {"a 'e4m3 1x128", "[4, 128]", "[128, 4]", "restore_scales"}));
  a.scale_inv = laid_out.values.view({4, 128}).transpose(0, 1);
  EXPECT_TRUE(throws<ValueError>([&] { (void)ops::quantized_gemm(a, b, DType::float32); },
                                 {"strides [1, 128]", "row-major"}));
  a.scale_inv = row_major;
  EXPECT_NO_THROW((void)ops::quantized_gemm(a, b, DType::float32));
}

}  // namespace
}  // namespace kitchen
