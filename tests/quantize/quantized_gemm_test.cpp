#include "kitchen/ops/quantized_gemm.h"

#include "kitchen/base/error.h"
#include "kitchen/formats/codec.h"
#include "kitchen/reference/cpu_backend.h"
#include "support/compare.h"
#include "support/golden_file.h"

#include <omp.h>

#include <cmath>

namespace kitchen {
namespace {

using testing::same_bits;

const std::vector<std::string> kVariants{"fast", "ref32", "ref64"};

ContextPtr poisoned_context() {
  auto allocator = std::make_shared<HostAllocator>();
  allocator->set_poison(true);
  return std::make_shared<Context>(Device::cpu(), reference::cpu_backend(), allocator);
}

Tensor random_matrix(const ContextPtr& context, const Shape& shape, std::uint32_t id) {
  const std::int64_t cols = shape.back();
  const std::int64_t rows = cols == 0 ? 0 : num_elements(shape) / cols;
  return testing::bf16_tensor(context, shape, testing::generate_values(rows, cols, 17, id, "wide"));
}

QuantizedMatrix quantize_as(const Tensor& x, const std::string& scheme) {
  return ops::quantize(x, quantize_spec_from_scheme_name(scheme));
}

/// Dequantized values in fp64 by indices of its own: code value times the scale of the element's block.
std::vector<double> exact_values(const QuantizedMatrix& q) {
  const std::int64_t rows = q.codes.dim(-2);
  const std::int64_t cols = q.codes.dim(-1);
  const std::vector<std::uint8_t> codes = q.codes.to_vector<std::uint8_t>();
  const bool is_nvfp4 = q.spec.rule == formats::ScaleRule::nvfp4;
  const auto block = q.spec.granularity;
  std::vector<double> values;
  for (std::int64_t i = 0; i < q.codes.numel(); ++i) {
    const std::int64_t slice = i / (rows * cols);
    const std::int64_t row = i / cols % rows;
    const std::int64_t col = i % cols;
    const std::int64_t sr = is_nvfp4 ? row : block.rows == 0 ? 0 : row / block.rows;
    const std::int64_t sc = block.cols == 0 ? 0 : col / block.cols;
    const std::int64_t at = (slice * q.scale_inv.dim(-2) + sr) * q.scale_inv.dim(-1) + sc;
    double scale = 0.0;
    if (is_nvfp4) {
      const float code = formats::decode(q.scale_inv.data<std::uint8_t>()[at], formats::kE4M3);
      scale = static_cast<double>(code) * static_cast<double>(q.amax.data<float>()[slice]) / 2688.0;
    } else if (q.scale_inv.dtype() == DType::float8_e8m0) {
      scale = std::ldexp(1.0, q.scale_inv.data<std::uint8_t>()[at] - 127);
    } else {
      scale = q.scale_inv.data<float>()[at];
    }
    const auto code = codes[static_cast<std::size_t>(i)];
    values.push_back(scale * static_cast<double>(formats::decode(code, q.spec.format)));
  }
  return values;
}

struct Expected {
  std::vector<double> values;
  std::vector<double> sizes;  ///< Σ|a||b|
};

Expected multiply(const QuantizedMatrix& a, const QuantizedMatrix& b) {
  const std::int64_t m = a.codes.dim(-2);
  const std::int64_t n = b.codes.dim(-2);
  const std::int64_t k = a.codes.dim(-1);
  const std::int64_t slices = num_slices(a.codes.shape());
  const std::vector<double> x = exact_values(a);
  const std::vector<double> y = exact_values(b);
  Expected expected;
  for (std::int64_t s = 0; s < slices; ++s) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0.0;
        double size = 0.0;
        for (std::int64_t l = 0; l < k; ++l) {
          const double p = x[static_cast<std::size_t>((s * m + i) * k + l)] *
                           y[static_cast<std::size_t>((s * n + j) * k + l)];
          sum += p;
          size += std::fabs(p);
        }
        expected.values.push_back(sum);
        expected.sizes.push_back(size);
      }
    }
  }
  return expected;
}

/// fp32 sums: k roundings of the sum, and at most 8 of decoded operands, their product, scales and bias.
void expect_near(const Expected& expected, const Tensor& actual, std::int64_t k, double extra = 0.0) {
  const std::vector<double> values = testing::values_of(actual);
  ASSERT_EQ(values.size(), expected.values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double bound = static_cast<double>(k + 8) * 0x1p-24 * (expected.sizes[i] + extra);
    ASSERT_TRUE(std::fabs(values[i] - expected.values[i]) <= bound)
        << "element " << i << ": " << values[i] << ", expected " << expected.values[i];
  }
}

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
        SCOPED_TRACE(std::string(pair.a) + " " + pair.b + " " + variant + " k=" + std::to_string(k));
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
  const QuantizedMatrix w = quantize_as(random_matrix(context, {256, 256}, 2), "b128x128_e4m3_pow2");
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
    for (const char* scheme : {"tensor_e4m3", "mxfp8_e4m3_row", "nvfp4_row", "b128x128_e4m3_pow2"}) {
      SCOPED_TRACE(variant + " " + scheme);
      const auto empty = [&](Shape shape) { return quantize_as(Tensor::zeros(context, std::move(shape), DType::bfloat16), scheme); };
      ops::GemmOptions options;
      options.variant = variant;
      EXPECT_EQ(ops::quantized_gemm(empty({0, 64}), empty({32, 64}), DType::bfloat16, options).shape(),
                (Shape{0, 32}));
      EXPECT_EQ(ops::quantized_gemm(empty({5, 64}), empty({0, 64}), DType::bfloat16, options).shape(),
                (Shape{5, 0}));
      EXPECT_EQ(ops::quantized_gemm(empty({4, 0}), empty({8, 0}), DType::float32, options).to_vector<float>(),
                std::vector<float>(32, 0.0f));
      options.bias = bias;
      const auto with_bias = ops::quantized_gemm(empty({4, 0}), empty({8, 0}), DType::float32, options);
      EXPECT_TRUE(same_bits(bias, with_bias.select(3)));
      // A weight gradient of no tokens adds nothing.
      const Tensor main_grad = Tensor::from_vector(context, {1, 8}, std::vector<float>(8, 2.5f));
      ops::quantized_gemm_into(empty({1, 0}), empty({8, 0}), main_grad, true, {1.0f, Tensor(), variant});
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
    for (std::size_t i = 0; i < single.size(); ++i) EXPECT_NEAR(doubled[i], 2.0f * single[i], std::fabs(single[i]) * 0x1p-22f);
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
  EXPECT_EQ(ops::quantized_gemm(codes(x), codes(y), DType::bfloat16, options).to_vector<std::uint16_t>()[0],
            0x3F81);
}

// labels: ops.quantized_gemm
TEST(QuantizedGemm, ExactVariantsDoNotDependOnTheNumberOfThreads) {
  const ContextPtr context = poisoned_context();
  const QuantizedMatrix a = quantize_as(random_matrix(context, {2, 70, 200}, 1), "b1x128_e4m3_fp32");
  const QuantizedMatrix b = quantize_as(random_matrix(context, {2, 40, 200}, 2), "b1x128_e4m3_fp32");
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
    const Tensor d = ops::quantized_gemm(quantize_as(x, "mxfp8_e4m3_row"), b, DType::bfloat16, options);
    const std::vector<double> values = testing::values_of(d);
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(std::isnan(values[i]), i / 4 == 1) << variant;
  }
}

// labels: ops.quantized_gemm
TEST(QuantizedGemm, WrongOperandsAreRefusedWithBothShapes) {
  const ContextPtr context = poisoned_context();
  const auto matrix = [&](Shape shape) { return quantize_as(Tensor::zeros(context, std::move(shape), DType::float32), "tensor_e4m3"); };
  try {
    (void)ops::quantized_gemm(matrix({4, 8}), matrix({5, 9}), DType::float32);
    FAIL() << "accepted";
  } catch (const ValueError& error) {
    EXPECT_NE(std::string(error.what()).find("[4, 8]"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("[5, 9]"), std::string::npos);
  }
  EXPECT_THROW((void)ops::quantized_gemm(matrix({2, 4, 8}), matrix({3, 5, 8}), DType::float32), ValueError);
  EXPECT_THROW((void)ops::quantized_gemm(matrix({4, 8}), matrix({5, 8}), DType::int32), TypeError);
  ops::GemmOptions options;
  options.bias = Tensor::zeros(context, {4}, DType::float32);
  EXPECT_THROW((void)ops::quantized_gemm(matrix({4, 8}), matrix({5, 8}), DType::float32, options), ValueError);
  options = {};
  options.variant = "wgmma";
  EXPECT_THROW((void)ops::quantized_gemm(matrix({4, 8}), matrix({5, 8}), DType::float32, options), NotImplementedError);
  const Tensor transposed = Tensor::zeros(context, {5, 4}, DType::float32).transpose(0, 1);
  EXPECT_THROW(ops::quantized_gemm_into(matrix({4, 8}), matrix({5, 8}), transposed, false), ValueError);
}

// labels: ops.quantized_gemm base.Context
TEST(QuantizedGemm, TheMetaDeviceCountsTheWorkspace) {
  const ContextPtr meta = reference::make_meta_context();
  const QuantizedMatrix a = quantize_as(Tensor::empty(meta, {128, 64}, DType::bfloat16), "tensor_e4m3");
  const QuantizedMatrix b = quantize_as(Tensor::empty(meta, {256, 64}, DType::bfloat16), "tensor_e4m3");
  const std::int64_t live = meta->allocator()->stats().live_bytes;
  meta->allocator()->reset_peak();
  const Tensor d = ops::quantized_gemm(a, b, DType::bfloat16);
  const std::int64_t workspace = 4 * (128 * 64 + 256 * 64 + 128 * 256);
  EXPECT_EQ(meta->allocator()->stats().peak_bytes - live, workspace + d.nbytes());
}

}  // namespace
}  // namespace kitchen
