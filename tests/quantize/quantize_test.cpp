#include "kitchen/ops/quantize.h"

#include "kitchen/base/error.h"
#include "kitchen/formats/codec.h"
#include "kitchen/reference/cpu_backend.h"
#include "support/compare.h"
#include "support/expect_error.h"
#include "support/golden_file.h"

#include <omp.h>

#include <cmath>
#include <limits>

namespace kitchen {
namespace {

using testing::same_bits;
using testing::throws;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

ContextPtr poisoned_context() {
  auto allocator = std::make_shared<HostAllocator>();
  allocator->set_poison(true);
  return std::make_shared<Context>(Device::cpu(), reference::cpu_backend(), allocator);
}

QuantizedMatrix quantize_as(const Tensor& x, const std::string& scheme) {
  ops::QuantizeCall call;
  call.rounding = {1234, 5, 0};
  return ops::quantize(x, quantize_spec_from_scheme_name(scheme), call);
}

std::vector<float> dequantized(const QuantizedMatrix& q) {
  return ops::dequantize(q, DType::float32).to_vector<float>();
}

::testing::AssertionResult same_matrix(const QuantizedMatrix& expected,
                                       const QuantizedMatrix& actual) {
  if (const auto codes = same_bits(expected.codes, actual.codes); !codes) {
    return ::testing::AssertionFailure() << "codes: " << codes.message();
  }
  if (const auto scales = same_bits(expected.scale_inv, actual.scale_inv); !scales) {
    return ::testing::AssertionFailure() << "scales: " << scales.message();
  }
  if (!expected.amax.defined()) return ::testing::AssertionSuccess();
  return same_bits(expected.amax, actual.amax);
}

// labels: ops.quantize N01
TEST(Quantize, ARowOfZerosStaysZeroAndTouchesNoOther) {
  const ContextPtr context = poisoned_context();
  std::vector<float> values = testing::generate_values(4, 128, 7, 1, "normal");
  const Tensor full = testing::bf16_tensor(context, {4, 128}, values);
  std::fill(values.begin() + 256, values.begin() + 384, 0.0f);
  const Tensor zero = testing::bf16_tensor(context, {4, 128}, values);
  for (const char* scheme : {"row_e4m3", "b1x128_e4m3_pow2", "b1x128_e4m3_fp32"}) {
    const QuantizedMatrix q = quantize_as(zero, scheme);
    const float scale = q.scale_inv.to_vector<float>()[2];
    EXPECT_TRUE(std::isfinite(scale) && scale > 0.0f) << scheme;
    const std::vector<float> back = dequantized(q);
    for (std::size_t i = 256; i < 384; ++i) ASSERT_EQ(bits_of(back[i]), 0u) << scheme;
    for (const std::int64_t row : {0, 1, 3}) {
      EXPECT_TRUE(
          same_bits(quantize_as(full, scheme).codes.slice(0, row, 1), q.codes.slice(0, row, 1)));
    }
  }
}

// labels: ops.quantize N03 N27
TEST(Quantize, TinyValuesGetALargestFiniteScaleAndSubnormalsAreKept) {
  const ContextPtr context = poisoned_context();
  std::vector<float> values(32, 0.0f);
  values[3] = 1e-40f;
  const QuantizedMatrix q =
      quantize_as(Tensor::from_vector(context, {2, 16}, values), "tensor_e4m3");
  EXPECT_EQ(bits_of(q.scale_inv.to_vector<float>()[0]), 0x00200000u);  // 1 / fp32 max
  const std::vector<float> back = dequantized(q);
  EXPECT_EQ(back[0], 0.0f);
  // 1e-40 · fp32 max = 0.034, three bits of which survive: kept, not flushed.
  EXPECT_NEAR(back[3] / 1e-40, 1.0, 1.0 / 16);
  const QuantizedMatrix tiny = quantize_as(
      Tensor::from_vector(context, {1, 2}, std::vector<float>{1e-39f, 1e-45f}), "tensor_e4m3");
  EXPECT_NEAR(dequantized(tiny)[0] / 1e-39, 1.0, 1.0 / 16);
  EXPECT_EQ(dequantized(tiny)[1], 0.0f);
}

// labels: ops.quantize N04
TEST(Quantize, ANaNTakesItsMxBlockAndNoOther) {
  std::vector<float> values(64, 1.0f);
  values[5] = kNaN;
  const QuantizedMatrix q =
      quantize_as(Tensor::from_vector(poisoned_context(), {1, 64}, values), "mxfp8_e4m3_row");
  EXPECT_EQ(q.scale_inv.to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{255, 119}));
  const std::vector<float> back = dequantized(q);
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_TRUE(i < 32 ? std::isnan(back[i]) : back[i] == 1.0f) << i;
  }
}

// labels: ops.quantize ops.quantization_stats N06
TEST(Quantize, AnInfinityFillsItsMxBlockAndIsCounted) {
  std::vector<float> values(32, 1.0f);
  values[0] = kInf;
  const Tensor x = Tensor::from_vector(poisoned_context(), {1, 32}, values);
  const QuantizedMatrix q = quantize_as(x, "mxfp8_e4m3_row");
  EXPECT_EQ(q.scale_inv.to_vector<std::uint8_t>()[0], 254);
  EXPECT_EQ(q.codes.to_vector<std::uint8_t>()[0], 0x7E);
  EXPECT_EQ(dequantized(q)[0], kInf);
  EXPECT_EQ(dequantized(q)[1], 0.0f);
  const ops::QuantizationStats stats = ops::quantization_stats(x, q);
  EXPECT_EQ(stats.num_non_finite, 1);
  EXPECT_EQ(stats.num_underflowed, 31);
}

// labels: ops.quantize N25
TEST(Quantize, PowersOfTwoRoundTheScaleDown) {
  const Tensor x = Tensor::from_vector(poisoned_context(), {1, 2}, std::vector<float>{3.0f, 1.0f});
  EXPECT_EQ(quantize_as(x, "tensor_e4m3").scale_inv.to_vector<float>()[0], 1.0f / (448.0f / 3.0f));
  EXPECT_EQ(quantize_as(x, "tensor_e4m3_pow2").scale_inv.to_vector<float>()[0], 1.0f / 128.0f);
  EXPECT_EQ(quantize_as(x, "tensor_e4m3").amax.to_vector<float>()[0], 3.0f);
}

// labels: ops.quantize N18 N20
TEST(Quantize, ZeroBlocksOfNvfp4DivideByNothing) {
  const ContextPtr context = poisoned_context();
  std::vector<float> values(32, 0.0f);
  std::fill(values.begin() + 16, values.end(), 6.0f);
  const QuantizedMatrix q = quantize_as(Tensor::from_vector(context, {1, 32}, values), "nvfp4_row");
  EXPECT_EQ(q.scale_inv.to_vector<std::uint8_t>()[0], 0);
  const std::vector<float> back = dequantized(q);
  for (std::size_t i = 0; i < 32; ++i) EXPECT_NEAR(back[i], values[i], 6.0 * 0x1p-22) << i;
  for (const char* scheme : {"nvfp4_row", "nvfp4_t_rht", "nvfp4_t_rht_sr"}) {
    const Tensor zero = Tensor::zeros(context, {16, 16}, DType::bfloat16);
    for (const float v : dequantized(quantize_as(zero, scheme))) EXPECT_EQ(v, 0.0f) << scheme;
  }
}

/// Shapes with edges of every kind: one element, a prime, a tile and its neighbours, no rows, no
/// columns.
const std::vector<Shape> kShapes{{1, 1},     {7, 13}, {32, 32}, {31, 33},  {128, 128},
                                 {129, 127}, {0, 64}, {64, 0},  {3, 1030}, {40, 520}};

// labels: ops.quantize
TEST(Quantize, AnyStridesGiveTheBytesOfTheContiguousCopy) {
  const ContextPtr context = poisoned_context();
  for (const std::string& scheme : quantize_scheme_names()) {
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(scheme + " " + to_string(shape));
      const std::int64_t rows = shape[0];
      const std::int64_t cols = shape[1];
      const std::vector<float> values = testing::generate_values(rows, cols, 3, 9, "wide");
      const Tensor x = testing::bf16_tensor(context, shape, values);
      const QuantizedMatrix expected = quantize_as(x, scheme);
      std::vector<float> mirrored(values.size());
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < cols; ++c) {
          mirrored[static_cast<std::size_t>(c * rows + r)] =
              values[static_cast<std::size_t>(r * cols + c)];
        }
      }
      const Tensor transposed =
          testing::bf16_tensor(context, {cols, rows}, mirrored).transpose(0, 1);
      EXPECT_TRUE(same_matrix(expected, quantize_as(transposed, scheme)));
      // One element behind the start of a wider buffer: misaligned, with gaps between the rows.
      const Tensor wide = Tensor::zeros(context, {rows, cols + 3}, DType::bfloat16);
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < cols; ++c) {
          wide.data<std::uint16_t>()[r * (cols + 3) + c + 1] =
              x.data<std::uint16_t>()[r * cols + c];
        }
      }
      EXPECT_TRUE(same_matrix(expected, quantize_as(wide.slice(1, 1, cols), scheme)));
    }
  }
}

// labels: ops.quantize
TEST(Quantize, SlicesAreIndependentUnderAnyLeadingStrides) {
  const ContextPtr context = poisoned_context();
  const Tensor x = testing::bf16_tensor(context, {3, 2, 5, 40},
                                        testing::generate_values(30, 40, 5, 2, "outlier"));
  for (const char* scheme : {"tensor_e4m3", "mxfp8_e4m3_row", "nvfp4_2d", "row_e5m2"}) {
    for (const Tensor& batch : {x, x.permute({1, 0, 2, 3}), x.permute({2, 0, 1, 3})}) {
      const QuantizedMatrix q = quantize_as(batch, scheme);
      const std::int64_t outer = batch.dim(0);
      for (std::int64_t i = 0; i < outer * batch.dim(1); ++i) {
        const Tensor slice = batch.select(i / batch.dim(1)).select(i % batch.dim(1));
        const QuantizedMatrix one = quantize_as(slice, scheme);
        EXPECT_TRUE(
            same_bits(one.codes, q.codes.select(i / batch.dim(1)).select(i % batch.dim(1))));
        EXPECT_TRUE(same_bits(one.scale_inv,
                              q.scale_inv.select(i / batch.dim(1)).select(i % batch.dim(1))));
      }
    }
  }
}

// labels: ops.quantize
TEST(Quantize, BytesDoNotDependOnTheNumberOfThreads) {
  const ContextPtr context = poisoned_context();
  const Tensor x =
      testing::bf16_tensor(context, {200, 300}, testing::generate_values(200, 300, 5, 2, "wide"));
  const int former = omp_get_max_threads();
  for (const std::string& scheme : quantize_scheme_names()) {
    omp_set_num_threads(1);
    const QuantizedMatrix one = quantize_as(x, scheme);
    omp_set_num_threads(3);
    EXPECT_TRUE(same_matrix(one, quantize_as(x, scheme))) << scheme;
  }
  omp_set_num_threads(former);
}

// labels: ops.quantize
TEST(Quantize, InputDtypesAgreeOnValuesThatAllOfThemHold) {
  const ContextPtr context = poisoned_context();
  std::vector<float> values;
  std::vector<std::uint16_t> half;
  for (int i = 0; i < 96; ++i) {
    values.push_back(static_cast<float>((i * 37 % 129) - 64) * 0.25f);
    half.push_back(formats::float_to_fp16(values.back()));
  }
  const Tensor fp32 = Tensor::from_vector(context, {3, 32}, values);
  const Tensor bf16 = testing::bf16_tensor(context, {3, 32}, values);
  const Tensor fp16 = testing::from_bits16(context, {3, 32}, DType::float16, half);
  for (const char* scheme : {"tensor_e4m3", "mxfp8_e4m3_row", "nvfp4_row"}) {
    EXPECT_TRUE(same_matrix(quantize_as(fp32, scheme), quantize_as(bf16, scheme)));
    EXPECT_TRUE(same_matrix(quantize_as(fp32, scheme), quantize_as(fp16, scheme)));
  }
}

// labels: ops.quantize
TEST(Quantize, GivenAmaxAndScaleReplaceTheComputedOnes) {
  const ContextPtr context = poisoned_context();
  const Tensor x = Tensor::from_vector(context, {1, 4}, std::vector<float>{1, -2, 3, 100});
  const QuantizeSpec spec = quantize_spec_from_scheme_name("tensor_e4m3");
  ops::QuantizeCall call;
  call.amax = Tensor::from_vector(context, {1}, std::vector<float>{448.0f});
  EXPECT_EQ(ops::quantize(x, spec, call).scale_inv.to_vector<float>()[0], 1.0f);
  EXPECT_EQ(ops::matrix_amax(x, spec).to_vector<float>()[0], 100.0f);
  call = {};
  call.scale = Tensor::from_vector(context, {1}, std::vector<float>{8.0f});
  const QuantizedMatrix q = ops::quantize(x, spec, call);
  EXPECT_EQ(q.scale_inv.to_vector<float>()[0], 0.125f);
  EXPECT_EQ(q.amax.to_vector<float>()[0], 100.0f);  // for the history
  EXPECT_EQ(dequantized(q), (std::vector<float>{1, -2, 3, 56}));
  EXPECT_EQ(ops::quantization_stats(x, q).num_saturated, 1);
  EXPECT_TRUE(throws<ValueError>(
      [&] { (void)ops::quantize(x, quantize_spec_from_scheme_name("mxfp8_e4m3_row"), call); },
      {"scale fits per-tensor specs only", "e4m3 1x32"}));
  call.scale = Tensor::from_vector(context, {2}, std::vector<float>{8.0f, 8.0f});
  EXPECT_TRUE(throws<ValueError>([&] { (void)ops::quantize(x, spec, call); },
                                 {"scale has shape [2]", "expected [1]"}));
  call.scale = Tensor::zeros(context, {1}, DType::bfloat16);
  EXPECT_TRUE(throws<TypeError>([&] { (void)ops::quantize(x, spec, call); },
                                {"scale is bfloat16", "expected float32"}));
}

// labels: ops.transpose_quantized
TEST(TransposeQuantized, EqualsTheQuantizedTranspose) {
  const ContextPtr context = poisoned_context();
  for (const char* scheme : {"tensor_e4m3", "b128x128_e4m3_pow2", "mxfp8_e4m3_2d", "nvfp4_2d"}) {
    for (const Shape& shape : {Shape{1, 1}, Shape{7, 13}, Shape{130, 257}, Shape{0, 5},
                               Shape{15, 64}, Shape{2, 64, 71}}) {
      SCOPED_TRACE(std::string(scheme) + to_string(shape));
      const std::int64_t rows = num_elements(shape) / std::max<std::int64_t>(shape.back(), 1);
      const Tensor x = testing::bf16_tensor(
          context, shape, testing::generate_values(rows, shape.back(), 5, 3, "wide"));
      const QuantizedMatrix expected = quantize_as(x.transpose(-2, -1), scheme);
      EXPECT_TRUE(same_matrix(expected, ops::transpose_quantized(quantize_as(x, scheme))));
    }
  }
  const Tensor x = Tensor::zeros(context, {4, 32}, DType::float32);
  EXPECT_TRUE(
      throws<ValueError>([&] { (void)ops::transpose_quantized(quantize_as(x, "mxfp8_e4m3_row")); },
                         {"e4m3 1x32", "quantize the transposed original"}));
}

// labels: ops.quantize
TEST(Quantize, WrongOperandsAreRefused) {
  const ContextPtr context = poisoned_context();
  const QuantizeSpec spec = quantize_spec_from_scheme_name("tensor_e4m3");
  const Tensor x = Tensor::zeros(context, {2, 2}, DType::float32);
  EXPECT_TRUE(throws<TypeError>(
      [&] {
        (void)ops::quantize(Tensor::zeros(context, {2, 2}, DType::int32), spec);
      },
      {"x is int32", "cast it first"}));
  EXPECT_TRUE(throws<ValueError>(
      [&] { (void)ops::quantize(Tensor::zeros(context, {4}, DType::float32), spec); },
      {"[4]", "[rows, cols]"}));
  const QuantizedMatrix q = ops::quantize(x, spec);
  EXPECT_TRUE(throws<TypeError>([&] { (void)ops::dequantize(q, DType::uint8); },
                                {"output dtype uint8", "bfloat16"}));
  EXPECT_TRUE(throws<ValueError>(
      [&] {
        (void)ops::quantization_stats(Tensor::zeros(context, {2, 3}, DType::float32), q);
      },
      {"[2, 3]", "[2, 2]", "that was quantized"}));
  ops::QuantizeCall call;
  call.rounding.offset = std::uint64_t{1} << 56;
  EXPECT_TRUE(throws<ValueError>([&] { (void)ops::quantize(x, spec, call); },
                                 {"offset 72057594037927936", "below 2^56"}));
}

// labels: ops.quantize base.Context
TEST(Quantize, TheMetaDeviceCountsTheBytesOfTheResult) {
  const ContextPtr meta = make_meta_context(*reference::make_cpu_context());
  const Tensor x = Tensor::empty(meta, {256, 512}, DType::bfloat16);
  const std::int64_t before = meta->allocator()->stats().live_bytes;
  const QuantizedMatrix q =
      ops::quantize(x.transpose(0, 1), quantize_spec_from_scheme_name("mxfp8_e4m3_row"));
  EXPECT_EQ(meta->allocator()->stats().live_bytes - before, 256 * 512 + 512 * 8);
  EXPECT_EQ(q.nbytes(), 256 * 512 + 512 * 8);
}

}  // namespace
}  // namespace kitchen
