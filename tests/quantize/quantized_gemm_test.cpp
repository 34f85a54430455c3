#include "kitchen/base/error.h"
#include "quantize/gemm_oracle.h"

#include <gtest/gtest.h>

#include <array>

namespace kitchen {
namespace {

using testing::expect_near;
using testing::Expected;
using testing::kVariants;
using testing::multiply;
using testing::poisoned_context;
using testing::quantize_as;
using testing::random_matrix;
using testing::same_bits;

struct Pair {
  const char* a;
  const char* b;
};

// Operands of one recipe, of two formats, and of unequal granularity.
const std::vector<Pair> kPairs{{"tensor_e4m3", "tensor_e4m3"},
                               {"tensor_e5m2", "tensor_e4m3_pow2"},
                               {"row_e4m3", "row_e5m2"},
                               {"tensor_e4m3", "row_e4m3"},
                               {"b1x128_e4m3_fp32", "b128x128_e4m3_fp32"},
                               {"b1x128_e4m3_pow2", "b1x128_e5m2_pow2"},
                               {"mxfp8_e4m3_row", "mxfp8_e5m2_row"},
                               {"mxfp8_e4m3_row", "mxfp8_e4m3_2d"},
                               {"mxfp8_e4m3_row", "tensor_e4m3"},
                               {"mxfp8_e4m3_row", "b1x128_e4m3_fp32"},
                               {"mxfp6_e2m3_row", "mxfp6_e3m2_row"},
                               {"mxfp4_row", "mxfp8_e4m3_row"},
                               {"nvfp4_row", "nvfp4_2d"},
                               {"nvfp4_row", "mxfp8_e4m3_row"},
                               {"int8_row", "int8_row"}};

// labels: ops.quantized_gemm G07 G08
TEST(QuantizedGemm, EveryVariantMatchesFp64SumsForEveryPairOfSchemes) {
  const ContextPtr context = poisoned_context();
  for (const Pair& pair : kPairs) {
    for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{
             {1, 1, 1}, {7, 5, 31}, {9, 16, 192}, {17, 3, 257}, {33, 20, 128}}) {
      const QuantizedMatrix a = quantize_as(random_matrix(context, {m, k}, 1), pair.a);
      const QuantizedMatrix b = quantize_as(random_matrix(context, {n, k}, 2), pair.b);
      const Expected expected = multiply(a, b);
      for (const std::string& variant : kVariants) {
        SCOPED_TRACE(std::string(pair.a) + " " + pair.b + " " + variant +
                     " k=" + std::to_string(k));
        ops::GemmOptions options;
        options.variant = variant;
        const Tensor d = ops::quantized_gemm(a, b, DType::float32, options);
        EXPECT_EQ(d.shape(), (Shape{m, n}));
        // ref64 rounds the factors of NVFP4 in fp32 and the result once.
        expect_near(expected, d, variant == "ref64" ? 0 : k);
      }
    }
  }
}

// labels: ops.quantized_gemm G07
TEST(QuantizedGemm, RowCountsAroundTheTileGetTheBiasOnce) {
  const ContextPtr context = poisoned_context();
  const QuantizedMatrix w =
      quantize_as(random_matrix(context, {256, 256}, 2), "b128x128_e4m3_pow2");
  const Tensor bias = random_matrix(context, {256}, 3);
  const std::vector<double> offsets = testing::values_of(bias);
  for (const std::int64_t m : {1, 7, 9, 127, 129}) {
    const QuantizedMatrix x = quantize_as(random_matrix(context, {m, 256}, 1), "b1x128_e4m3_pow2");
    Expected expected = multiply(x, w);
    for (std::size_t i = 0; i < expected.values.size(); ++i) expected.values[i] += offsets[i % 256];
    ops::GemmOptions options;
    options.bias = bias;
    expect_near(expected, ops::quantized_gemm(x, w, DType::float32, options), 256, 1024.0);
  }
}

// labels: ops.quantized_gemm G15
TEST(QuantizedGemm, EmptyProblemsGiveEmptyResultsOrZerosPlusBias) {
  const ContextPtr context = poisoned_context();
  const Tensor bias = Tensor::from_vector(context, {8}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
  for (const std::string& variant : kVariants) {
    for (const char* scheme :
         {"tensor_e4m3", "mxfp8_e4m3_row", "nvfp4_row", "b128x128_e4m3_pow2"}) {
      SCOPED_TRACE(variant + " " + scheme);
      const auto empty = [&](Shape shape) {
        return quantize_as(Tensor::zeros(context, std::move(shape), DType::bfloat16), scheme);
      };
      ops::GemmOptions options;
      options.variant = variant;
      EXPECT_EQ(
          ops::quantized_gemm(empty({0, 64}), empty({32, 64}), DType::bfloat16, options).shape(),
          (Shape{0, 32}));
      EXPECT_EQ(
          ops::quantized_gemm(empty({5, 64}), empty({0, 64}), DType::bfloat16, options).shape(),
          (Shape{5, 0}));
      EXPECT_EQ(ops::quantized_gemm(empty({4, 0}), empty({8, 0}), DType::float32, options)
                    .to_vector<float>(),
                std::vector<float>(32, 0.0f));
      options.bias = bias;
      const auto with_bias =
          ops::quantized_gemm(empty({4, 0}), empty({8, 0}), DType::float32, options);
      EXPECT_TRUE(same_bits(bias, with_bias.select(3)));
      // A weight gradient of no tokens adds nothing.
      const Tensor main_grad = Tensor::from_vector(context, {1, 8}, std::vector<float>(8, 2.5f));
      ops::quantized_gemm_into(empty({1, 0}), empty({8, 0}), main_grad, true,
                               {1.0f, Tensor(), variant});
      EXPECT_EQ(main_grad.to_vector<float>(), std::vector<float>(8, 2.5f));
    }
  }
}

// labels: ops.quantized_gemm
TEST(QuantizedGemm, SlicesAreMultipliedEachWithItsOwnScales) {
  const ContextPtr context = poisoned_context();
  for (const char* scheme : {"tensor_e4m3", "mxfp8_e4m3_row", "nvfp4_row"}) {
    const QuantizedMatrix a = quantize_as(random_matrix(context, {2, 3, 9, 48}, 1), scheme);
    const QuantizedMatrix b = quantize_as(random_matrix(context, {2, 3, 5, 48}, 2), scheme);
    const Expected expected = multiply(a, b);
    for (const std::string& variant : kVariants) {
      ops::GemmOptions options;
      options.variant = variant;
      const Tensor d = ops::quantized_gemm(a, b, DType::float32, options);
      EXPECT_EQ(d.shape(), (Shape{2, 3, 9, 5}));
      expect_near(expected, d, 48);
    }
  }
}

// labels: ops.quantized_gemm
TEST(QuantizedGemm, AccumulatesIntoStridedRowsAndLeavesTheGapsAlone) {
  const ContextPtr context = poisoned_context();
  const QuantizedMatrix a = quantize_as(random_matrix(context, {6, 40}, 1), "tensor_e4m3");
  const QuantizedMatrix b = quantize_as(random_matrix(context, {4, 40}, 2), "tensor_e4m3");
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    for (const std::string& variant : kVariants) {
      ops::GemmOptions options;
      options.variant = variant;
      options.alpha = 0x1p-12f;
      const Tensor plain = ops::quantized_gemm(a, b, dtype, options);
      const Tensor buffer = Tensor::zeros(context, {6, 7}, dtype);
      const Tensor out = buffer.slice(1, 2, 4);
      ops::quantized_gemm_into(a, b, out, true, options);
      EXPECT_TRUE(same_bits(plain, out)) << to_string(dtype) << " " << variant;
      ops::quantized_gemm_into(a, b, out, false, options);
      EXPECT_TRUE(same_bits(plain, out));
      const std::vector<double> all = testing::values_of(buffer);
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (i % 7 < 2 || i % 7 == 6) {
          EXPECT_EQ(all[i], 0.0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace kitchen
