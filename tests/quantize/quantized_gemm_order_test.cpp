#include "kitchen/base/error.h"
#include "quantize/gemm_oracle.h"
#include "support/expect_error.h"

#include <gtest/gtest.h>

#include <omp.h>

#include <algorithm>
#include <cmath>

namespace kitchen {
namespace {

using testing::kVariants;
using testing::poisoned_context;
using testing::quantize_as;
using testing::random_matrix;
using testing::same_bits;
using testing::throws;

// labels: ops.quantized_gemm
TEST(QuantizedGemm, MainGradReceivesTheFp32SumWithoutARounding) {
  const ContextPtr context = poisoned_context();
  const QuantizedMatrix a = quantize_as(random_matrix(context, {6, 40}, 1), "mxfp8_e4m3_row");
  const QuantizedMatrix b = quantize_as(random_matrix(context, {4, 40}, 2), "mxfp8_e4m3_row");
  for (const std::string& variant : kVariants) {
    ops::GemmOptions options;
    options.variant = variant;
    const Tensor once = ops::quantized_gemm(a, b, DType::float32, options);
    const Tensor twice = ops::quantized_gemm(a, b, DType::float32, options);
    ops::quantized_gemm_into(a, b, twice, true, options);
    const std::vector<float> single = once.to_vector<float>();
    const std::vector<float> doubled = twice.to_vector<float>();
    for (std::size_t i = 0; i < single.size(); ++i)
      EXPECT_NEAR(doubled[i], 2.0f * single[i], std::fabs(single[i]) * 0x1p-22f);
  }
}

// labels: ops.quantized_gemm
TEST(QuantizedGemm, TheOracleRoundsToSixteenBitsOnce) {
  const ContextPtr context = poisoned_context();
  // 1 + 2^-8 + 2^-30: fp32 drops the last term, and the tie then rounds to even, down to 1.
  const auto codes = [&](std::vector<float> values) {
    return quantize_as(Tensor::from_vector(context, {1, 32}, values), "mxfp8_e5m2_row");
  };
  std::vector<float> x(32, 0.0f);
  std::vector<float> y(32, 0.0f);
  x[0] = 1.0f;
  y[0] = 1.0f;
  x[1] = 0x1p-4f;
  y[1] = 0x1p-4f;
  x[2] = 0x1p-15f;
  y[2] = 0x1p-15f;
  ops::GemmOptions options;
  options.variant = "ref64";
  EXPECT_EQ(ops::quantized_gemm(codes(x), codes(y), DType::bfloat16, options)
                .to_vector<std::uint16_t>()[0],
            0x3F81);
}

/// numerics.md S5.1 written down once more: partial sums of `block` products, then the scale of the
/// block.
float ref32_by_hand(const QuantizedMatrix& a, const QuantizedMatrix& b, std::int64_t i,
                    std::int64_t j, std::int64_t block) {
  const std::int64_t k = a.codes.dim(1);
  const auto value = [k](const QuantizedMatrix& q, std::int64_t row, std::int64_t l) {
    return formats::decode(q.codes.data<std::uint8_t>()[row * k + l], q.spec.format);
  };
  float acc = 0.0f;
  for (std::int64_t l = 0; l < k; l += block) {
    float p = 0.0f;
    for (std::int64_t e = l; e < std::min(k, l + block); ++e) p += value(a, i, e) * value(b, j, e);
    if (a.spec.granularity.is_per_tensor()) {
      acc += p;
      continue;
    }
    const std::int64_t at = l / block;
    const auto scale = [at](const QuantizedMatrix& q, std::int64_t row) {
      const std::int64_t index = row * q.scale_inv.dim(1) + at;
      if (q.scale_inv.dtype() == DType::float32) return q.scale_inv.data<float>()[index];
      const std::uint8_t byte = q.scale_inv.data<std::uint8_t>()[index];
      if (q.scale_inv.dtype() == DType::float8_e4m3) return formats::decode(byte, formats::kE4M3);
      return std::ldexp(1.0f, byte - 127);
    };
    const float both = scale(a, i) * scale(b, j);
    acc = a.spec.rule == formats::ScaleRule::nvfp4 ? acc + both * p : std::fmaf(p, both, acc);
  }
  if (a.spec.granularity.is_per_tensor()) {
    return acc * (a.scale_inv.data<float>()[0] * b.scale_inv.data<float>()[0]);
  }
  if (a.spec.rule != formats::ScaleRule::nvfp4) return acc;
  return acc * (a.amax.data<float>()[0] * b.amax.data<float>()[0] / 7225344.0f);
}

// labels: ops.quantized_gemm
TEST(QuantizedGemm, Ref32FollowsTheWrittenOrderBitByBit) {
  const ContextPtr context = poisoned_context();
  ops::GemmOptions options;
  options.variant = "ref32";
  const std::vector<std::pair<const char*, std::int64_t>> cases{
      {"tensor_e4m3", 128}, {"b1x128_e4m3_fp32", 128}, {"mxfp8_e4m3_row", 32}, {"nvfp4_row", 16}};
  for (const auto& [scheme, block] : cases) {
    const QuantizedMatrix a = quantize_as(random_matrix(context, {19, 411}, 1), scheme);
    const QuantizedMatrix b = quantize_as(random_matrix(context, {13, 411}, 2), scheme);
    std::vector<float> expected;
    for (std::int64_t i = 0; i < 19; ++i) {
      for (std::int64_t j = 0; j < 13; ++j) expected.push_back(ref32_by_hand(a, b, i, j, block));
    }
    EXPECT_TRUE(same_bits(Tensor::from_vector(context, {19, 13}, expected),
                          ops::quantized_gemm(a, b, DType::float32, options)))
        << scheme;
  }
}

// labels: ops.quantized_gemm
TEST(QuantizedGemm, TheGlobalFactorOfNvfp4IsOneAtItsReferenceAmax) {
  const ContextPtr context = poisoned_context();
  // amax 2688 = 6·448 makes the largest code 6 and its block scale 448, so that nothing is rounded.
  const auto one = [&] {
    return quantize_as(Tensor::from_vector(context, {1, 1}, std::vector<float>{2688.0f}),
                       "nvfp4_row");
  };
  for (const std::string& variant : kVariants) {
    ops::GemmOptions options;
    options.variant = variant;
    const Tensor d = ops::quantized_gemm(one(), one(), DType::float32, options);
    EXPECT_EQ(d.to_vector<float>()[0], 2688.0f * 2688.0f) << variant;
  }
}

// labels: ops.quantized_gemm
TEST(QuantizedGemm, ExactVariantsDoNotDependOnTheNumberOfThreads) {
  const ContextPtr context = poisoned_context();
  const QuantizedMatrix a =
      quantize_as(random_matrix(context, {2, 70, 200}, 1), "b1x128_e4m3_fp32");
  const QuantizedMatrix b =
      quantize_as(random_matrix(context, {2, 40, 200}, 2), "b1x128_e4m3_fp32");
  const int former = omp_get_max_threads();
  for (const std::string variant : {"ref32", "ref64"}) {
    ops::GemmOptions options;
    options.variant = variant;
    omp_set_num_threads(1);
    const Tensor one = ops::quantized_gemm(a, b, DType::float32, options);
    omp_set_num_threads(3);
    EXPECT_TRUE(same_bits(one, ops::quantized_gemm(a, b, DType::float32, options)));
  }
  omp_set_num_threads(former);
}

// labels: ops.quantized_gemm
TEST(QuantizedGemm, ANaNInABlockReachesItsRowOnly) {
  const ContextPtr context = poisoned_context();
  const Tensor x = random_matrix(context, {3, 64}, 1);
  x.data<std::uint16_t>()[64 + 5] = 0x7FC0;
  const QuantizedMatrix b = quantize_as(random_matrix(context, {4, 64}, 2), "mxfp8_e4m3_row");
  for (const std::string& variant : kVariants) {
    ops::GemmOptions options;
    options.variant = variant;
    const Tensor d =
        ops::quantized_gemm(quantize_as(x, "mxfp8_e4m3_row"), b, DType::bfloat16, options);
    const std::vector<double> values = testing::values_of(d);
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(std::isnan(values[i]), i / 4 == 1) << variant;
  }
}

// labels: ops.quantized_gemm
TEST(QuantizedGemm, WrongOperandsAreRefusedWithBothShapes) {
  const ContextPtr context = poisoned_context();
  const auto matrix = [&](Shape shape) {
    return quantize_as(Tensor::zeros(context, std::move(shape), DType::float32), "tensor_e4m3");
  };
  const QuantizedMatrix a = matrix({4, 8});
  const QuantizedMatrix b = matrix({5, 8});
  ops::GemmOptions options;
  const auto product = [&](const QuantizedMatrix& x, const QuantizedMatrix& y, DType dtype) {
    return [&, dtype] { (void)ops::quantized_gemm(x, y, dtype, options); };
  };
  EXPECT_TRUE(throws<ValueError>(product(a, matrix({5, 9}), DType::float32), {"[4, 8]", "[5, 9]"}));
  EXPECT_TRUE(throws<ValueError>(product(matrix({2, 4, 8}), matrix({3, 5, 8}), DType::float32),
                                 {"[2, 4, 8]", "[3, 5, 8]"}));
  EXPECT_TRUE(
      throws<TypeError>(product(a, b, DType::int32), {"output dtype is int32", "bfloat16"}));
  options.bias = Tensor::zeros(context, {4}, DType::float32);
  EXPECT_TRUE(throws<ValueError>(product(a, b, DType::float32), {"bias has shape [4]", "[5]"}));
  options.bias = Tensor::zeros(context, {5}, DType::int32);
  EXPECT_TRUE(throws<TypeError>(product(a, b, DType::float32), {"bias is int32", "float32"}));
  options = {};
  options.variant = "wgmma";
  EXPECT_TRUE(throws<NotImplementedError>(product(a, b, DType::float32), {"wgmma"}));
  const auto into = [&](const Tensor& out) {
    return [&a, &b, out] { ops::quantized_gemm_into(a, b, out, false); };
  };
  EXPECT_TRUE(throws<ValueError>(into(Tensor::zeros(context, {5, 4}, DType::float32)),
                                 {"out is [5, 4]", "[4, 5]"}));
  EXPECT_TRUE(
      throws<ValueError>(into(Tensor::zeros(context, {5, 4}, DType::float32).transpose(0, 1)),
                         {"out has strides [1, 4]", "contiguous rows"}));
}

// labels: ops.quantized_gemm base.Context
TEST(QuantizedGemm, TheMetaDeviceCountsTheWorkspace) {
  const ContextPtr meta = make_meta_context(*reference::make_cpu_context());
  const QuantizedMatrix a =
      quantize_as(Tensor::empty(meta, {128, 64}, DType::bfloat16), "tensor_e4m3");
  const QuantizedMatrix b =
      quantize_as(Tensor::empty(meta, {256, 64}, DType::bfloat16), "tensor_e4m3");
  const std::int64_t live = meta->allocator()->stats().live_bytes;
  meta->allocator()->reset_peak();
  const Tensor d = ops::quantized_gemm(a, b, DType::bfloat16);
  const std::int64_t workspace = 4 * (128 * 64 + 256 * 64 + 128 * 256);
  EXPECT_EQ(meta->allocator()->stats().peak_bytes - live, workspace + d.nbytes());
}

}  // namespace
}  // namespace kitchen
