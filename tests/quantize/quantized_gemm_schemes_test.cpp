#include "kitchen/base/error.h"
#include "quantize/gemm_oracle.h"
#include "support/expect_error.h"

#include <gtest/gtest.h>

namespace kitchen {
namespace {

using testing::expect_near;
using testing::kVariants;
using testing::multiply;
using testing::poisoned_context;
using testing::quantize_as;
using testing::random_matrix;
using testing::same_bits;
using testing::throws;

/// Sums of `variant` must be within this many fp32 roundings: those of the sum, none for the
/// oracle.
std::int64_t roundings(const std::string& variant, std::int64_t k) {
  return variant == "ref64" ? 0 : k;
}

// labels: ops.quantized_gemm G08 R09
TEST(QuantizedGemmSchemes, EverySchemeMultipliesItself) {
  const ContextPtr context = poisoned_context();
  for (const std::string& scheme : quantize_scheme_names()) {
    for (const std::int64_t k : {1, 31, 192, 257}) {
      const QuantizedMatrix a = quantize_as(random_matrix(context, {17, k}, 1), scheme);
      const QuantizedMatrix b = quantize_as(random_matrix(context, {5, k}, 2), scheme);
      for (const std::string& variant : kVariants) {
        SCOPED_TRACE(scheme + " " + variant + " k=" + std::to_string(k));
        const Tensor d = ops::quantized_gemm(a, b, DType::float32, {1.0f, Tensor(), variant});
        expect_near(multiply(a, b), d, roundings(variant, a.codes.dim(1)));
      }
    }
  }
}

// labels: ops.quantized_gemm G09
TEST(QuantizedGemmSchemes, RowScalesReachTheLastRowsOfARaggedTile) {
  const ContextPtr context = poisoned_context();
  const QuantizedMatrix w = quantize_as(random_matrix(context, {96, 256}, 2), "row_e4m3");
  for (const std::int64_t m : {352, 353}) {  // 8352 modulo 512 rows of a tile, and one more
    const QuantizedMatrix x = quantize_as(random_matrix(context, {m, 256}, 1), "row_e4m3");
    expect_near(multiply(x, w), ops::quantized_gemm(x, w, DType::float32), 256);
  }
}

// labels: ops.quantized_gemm G27
TEST(QuantizedGemmSchemes, TwentyFourTokensGoForwardAndBackward) {
  const ContextPtr context = poisoned_context();
  const Tensor x = random_matrix(context, {24, 64}, 1);
  const Tensor w = random_matrix(context, {64, 64}, 2);
  const Tensor dy = random_matrix(context, {24, 64}, 3);
  for (const char* scheme : {"tensor_e4m3", "row_e5m2", "b1x128_e4m3_pow2", "mxfp8_e4m3_row",
                             "nvfp4_row", "nvfp4_t_rht"}) {
    SCOPED_TRACE(scheme);
    const auto check = [&](const Tensor& a, const Tensor& b) {
      const QuantizedMatrix qa = quantize_as(a, scheme);
      const QuantizedMatrix qb = quantize_as(b, scheme);
      const Tensor d = ops::quantized_gemm(qa, qb, DType::float32);
      EXPECT_EQ(d.shape(), (Shape{a.dim(0), b.dim(0)}));
      expect_near(multiply(qa, qb), d, qa.codes.dim(1));
    };
    check(x, w);
    check(dy, w.transpose(0, 1));
    check(dy.transpose(0, 1), x.transpose(0, 1));
  }
}

// labels: ops.quantized_gemm ops.quantize G25
TEST(QuantizedGemmSchemes, CodesOfAProductAreMadeByQuantizeWhoseScaleMultiplies) {
  const ContextPtr context = poisoned_context();
  const auto one_by_one = [&](float value) {
    return quantize_as(Tensor::from_vector(context, {1, 1}, std::vector<float>{value}),
                       "tensor_e4m3_pow2");
  };
  EXPECT_TRUE(throws<TypeError>(
      [&] { (void)ops::quantized_gemm(one_by_one(4), one_by_one(2), DType::float8_e4m3); },
      {"float8_e4m3", "quantize the result"}));
  const Tensor d = ops::quantized_gemm(one_by_one(4), one_by_one(2), DType::float32);
  ops::QuantizeCall call;
  call.scale = Tensor::from_vector(context, {1}, std::vector<float>{0.25f});
  const QuantizedMatrix q = ops::quantize(d, quantize_spec_from_scheme_name("tensor_e4m3"), call);
  EXPECT_EQ(q.codes.to_vector<std::uint8_t>()[0], formats::encode(2.0f, formats::kE4M3));
  EXPECT_EQ(q.scale_inv.to_vector<float>()[0], 4.0f);
}

// labels: ops.quantized_gemm
TEST(QuantizedGemmSchemes, ATransformOnOneOperandIsRefused) {
  const ContextPtr context = poisoned_context();
  const Tensor x = random_matrix(context, {4, 32}, 1);
  EXPECT_TRUE(throws<ValueError>(
      [&] {
        (void)ops::quantized_gemm(quantize_as(x, "nvfp4_t_rht"), quantize_as(x, "nvfp4_t"),
                                  DType::float32);
      },
      {"hadamard", "both operands"}));
}

// labels: ops.quantized_gemm
TEST(QuantizedGemmSchemes, OperandsThatAreNotWhatTheirSpecSaysAreRefused) {
  const ContextPtr context = poisoned_context();
  const QuantizedMatrix good = quantize_as(random_matrix(context, {4, 32}, 1), "nvfp4_row");
  const auto product = [&](const QuantizedMatrix& a) {
    return [&] { (void)ops::quantized_gemm(a, good, DType::float32); };
  };
  QuantizedMatrix bad = good;
  bad.amax = Tensor();
  EXPECT_TRUE(throws<ValueError>(product(bad), {"no amax"}));
  bad = good;
  bad.spec = quantize_spec_from_scheme_name("mxfp4_row");
  EXPECT_TRUE(throws<TypeError>(product(bad), {"scales float8_e4m3", "float8_e8m0"}));
  bad = good;
  bad.spec.format = formats::kE4M3;
  EXPECT_TRUE(throws<TypeError>(product(bad), {"codes float4_e2m1", "float8_e4m3"}));
}

// labels: ops.quantized_gemm
TEST(QuantizedGemmSchemes, TheReferenceSumsIntegersExactly) {
  const ContextPtr context = poisoned_context();
  // Sums of 128 products are odd, and soon beyond the integers that fp32 holds: adding them in fp32
  // loses one or more each time. The whole sum is a multiple of 8 below 2^27, and has no error.
  const std::vector<float> x(8192, 127.0f);
  std::vector<float> y = x;
  for (std::size_t i = 0; i < y.size(); i += 128) y[i] = 126.0f;
  const QuantizedMatrix a = quantize_as(Tensor::from_vector(context, {1, 8192}, x), "int8_row");
  const QuantizedMatrix b = quantize_as(Tensor::from_vector(context, {1, 8192}, y), "int8_row");
  const Tensor d = ops::quantized_gemm(a, b, DType::float32, {1.0f, Tensor(), "ref32"});
  EXPECT_EQ(d.to_vector<float>()[0], 64.0f * (127 * 127 * 127 + 126 * 127));
}

}  // namespace
}  // namespace kitchen
