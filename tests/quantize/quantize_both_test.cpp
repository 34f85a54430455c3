#include "formats/all_specs.h"
#include "kitchen/base/error.h"
#include "kitchen/base/math.h"
#include "kitchen/formats/codec.h"
#include "kitchen/ops/quantize.h"
#include "kitchen/reference/bfloat16_encoder.h"
#include "support/compare.h"
#include "support/expect_error.h"
#include "support/values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace kitchen {
namespace {

using testing::poisoned_context;
using testing::same_bits;

constexpr float kInf = std::numeric_limits<float>::infinity();

/// A bfloat16 matrix of every magnitude that the scale rules tell apart.
std::vector<std::uint16_t> wide_values(std::int64_t count) {
  std::vector<std::uint16_t> values(static_cast<std::size_t>(count));
  std::uint32_t state = 1;
  for (std::uint16_t& value : values) {
    state = state * 1664525u + 1013904223u;
    const float unit = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31f;
    value = formats::float_to_bf16(std::ldexp(unit, static_cast<int>(state >> 8 & 15u) - 10));
  }
  return values;
}

Tensor bf16_of(const ContextPtr& context, const Shape& shape,
               const std::vector<std::uint16_t>& bits) {
  const Tensor x = Tensor::empty(context, shape, DType::bfloat16);
  if (!bits.empty()) std::memcpy(x.raw_data(), bits.data(), 2 * bits.size());
  return x;
}

/// Codes and scales of one 1x128 block after the other, by the text of the scale rules alone.
struct Oracle {
  std::vector<std::uint8_t> codes;
  std::vector<std::uint8_t> scales;  ///< bytes
};

Oracle oracle_of(const std::vector<std::uint16_t>& x, std::int64_t rows, std::int64_t cols,
                 const QuantizeSpec& spec) {
  Oracle result;
  result.codes.resize(x.size());
  for (std::int64_t start = 0; start < rows * cols;) {
    const std::int64_t end = std::min(start + 128, (start / cols + 1) * cols);
    float amax = 0.0f;
    bool has_nan = false;
    for (std::int64_t i = start; i < end; ++i) {
      const float size = std::fabs(formats::bf16_to_float(x[static_cast<std::size_t>(i)]));
      has_nan = has_nan || std::isnan(size);
      if (size > amax) amax = size;
    }
    const formats::BlockScale scale = formats::block_scale(
        spec.rule, spec.format, amax, has_nan, spec.eps, float_from_bits(0x7F7F0000u), 0.0f);
    std::uint8_t bytes[4] = {static_cast<std::uint8_t>(scale.code)};
    if (!spec.has_byte_scales()) std::memcpy(bytes, &scale.scale_inv, 4);
    result.scales.insert(result.scales.end(), bytes, bytes + (spec.has_byte_scales() ? 1 : 4));
    for (; start < end; ++start) {
      const auto i = static_cast<std::size_t>(start);
      result.codes[i] = static_cast<std::uint8_t>(
          formats::encode(formats::bf16_to_float(x[i]) * scale.scale, spec.format));
    }
  }
  return result;
}

std::vector<std::uint8_t> bytes_of(const Tensor& x) {
  const auto* bytes = static_cast<const std::uint8_t*>(x.raw_data());
  return {bytes, bytes + x.nbytes()};
}

void expect_oracle(const Oracle& expected, const QuantizedMatrix& actual) {
  EXPECT_EQ(expected.codes, bytes_of(actual.codes));
  EXPECT_EQ(expected.scales, bytes_of(actual.scale_inv));
}

std::vector<std::uint16_t> transposed(const std::vector<std::uint16_t>& x, std::int64_t rows,
                                      std::int64_t cols) {
  std::vector<std::uint16_t> result(x.size());
  for (std::int64_t i = 0; i < rows * cols; ++i) {
    result[static_cast<std::size_t>(i % cols * rows + i / cols)] = x[static_cast<std::size_t>(i)];
  }
  return result;
}

/// Both copies in one go, and each alone, against the oracle.
void expect_copies(const std::vector<std::uint16_t>& bits, std::int64_t rows, std::int64_t cols,
                   const QuantizeSpec& spec) {
  SCOPED_TRACE(to_string(spec) + " " + std::to_string(rows) + "x" + std::to_string(cols));
  const Tensor x = bf16_of(poisoned_context(), {rows, cols}, bits);
  const Oracle rowwise = oracle_of(bits, rows, cols, spec);
  const Oracle columnwise = oracle_of(transposed(bits, rows, cols), cols, rows, spec);
  const ops::QuantizedPair pair = ops::quantize_both(x, spec);
  expect_oracle(rowwise, pair.rowwise);
  expect_oracle(columnwise, pair.columnwise);
  expect_oracle(rowwise, ops::quantize(x, spec));
  expect_oracle(columnwise, ops::quantize(x.transpose(0, 1), spec));
}

std::vector<QuantizeSpec> block_specs() {
  std::vector<QuantizeSpec> specs;
  for (const auto& format : {formats::kE4M3, formats::kE5M2}) {
    for (const auto rule : {formats::ScaleRule::float32, formats::ScaleRule::float32_pow2,
                            formats::ScaleRule::deepgemm, formats::ScaleRule::deepgemm_ue8m0,
                            formats::ScaleRule::e8m0_roundup, formats::ScaleRule::e8m0_ocp_floor}) {
      specs.push_back({format, formats::kBlock1x128, rule});
    }
  }
  return specs;
}

// labels: ops.quantize ops.quantize_both
TEST(QuantizeBoth, EachCopyHasTheBytesOfTheRules) {
  for (const QuantizeSpec& spec : block_specs()) {
    for (const auto& [rows, cols] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {1, 1}, {31, 17}, {128, 128}, {127, 129}, {257, 130}, {0, 5}, {5, 0}}) {
      expect_copies(wide_values(rows * cols), rows, cols, spec);
    }
  }
}

// labels: ops.quantize ops.quantize_both
TEST(QuantizeBoth, NaNInfinityAndTinyValuesFollowTheRulesToo) {
  for (const QuantizeSpec& spec : block_specs()) {
    for (const float special : {std::nanf(""), -std::nanf(""), kInf, -kInf, 0x1p-130f}) {
      std::vector<std::uint16_t> bits = wide_values(150 * 140);
      bits[3 * 140 + 5] = static_cast<std::uint16_t>(bits_of(special) >> 16);
      expect_copies(bits, 150, 140, spec);
    }
    expect_copies(std::vector<std::uint16_t>(150 * 140, 0x8000), 150, 140, spec);
    expect_copies(std::vector<std::uint16_t>(150 * 140, 0x0001), 150, 140, spec);
  }
}

// labels: ops.quantize ops.quantize_both
TEST(QuantizeBoth, SlicesAndStridesAreThoseOfTwoCalls) {
  const ContextPtr context = poisoned_context();
  const Tensor whole = bf16_of(context, {3, 70, 260}, wide_values(std::int64_t{3} * 70 * 260));
  for (const Tensor& x : {whole, whole.slice(2, 1, 201), whole.transpose(0, 1)}) {
    for (const char* scheme : {"tensor_e4m3", "b1x128_e4m3_fp32", "mxfp8_e4m3_row", "nvfp4_row"}) {
      const QuantizeSpec spec = quantize_spec_from_scheme_name(scheme);
      const ops::QuantizedPair pair = ops::quantize_both(x, spec);
      const QuantizedMatrix rowwise = ops::quantize(x, spec);
      const QuantizedMatrix columnwise = ops::quantize(x.transpose(-2, -1), spec);
      EXPECT_TRUE(same_bits(rowwise.codes, pair.rowwise.codes)) << scheme;
      EXPECT_TRUE(same_bits(rowwise.scale_inv, pair.rowwise.scale_inv)) << scheme;
      EXPECT_TRUE(same_bits(columnwise.codes, pair.columnwise.codes)) << scheme;
      EXPECT_TRUE(same_bits(columnwise.scale_inv, pair.columnwise.scale_inv)) << scheme;
    }
  }
}

// labels: ops.quantize_both
TEST(QuantizeBoth, StochasticRoundingIsRefused) {
  const Tensor x = bf16_of(poisoned_context(), {16, 16}, wide_values(256));
  EXPECT_TRUE(testing::throws<ValueError>(
      [&] { (void)ops::quantize_both(x, quantize_spec_from_scheme_name("nvfp4_row_sr")); },
      {"quantize_both", "stochastic", "rounding stream"}));
}

// labels: ops.quantize formats.encode
TEST(Bfloat16Encoder, EveryValueGetsTheCodeOfASingleElement) {
  std::vector<std::uint16_t> values(65536 + 17);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint16_t>(i);
  std::vector<std::uint8_t> codes(values.size());
  const auto n = static_cast<std::int64_t>(values.size());
  for (const formats::FloatSpec& spec : {formats::kE4M3, formats::kE5M2, formats::kE2M1}) {
    const reference::EncodeBfloat16Row encode = reference::bfloat16_row_encoder(spec);
    ASSERT_NE(encode, nullptr);
    for (const float scale : {1.0f, 3.7f, 448.0f, 1e-3f, 0x1p90f, 0x1p100f, 1e38f, 1e-38f, 1e-44f,
                              0.0f, -1.0f, kInf, std::nanf("")}) {
      encode(values.data(), scale, codes.data(), n);
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(codes[i], formats::encode(formats::bf16_to_float(values[i]) * scale, spec))
            << spec.name << " scale " << scale << " bits " << values[i];
      }
    }
  }
  EXPECT_EQ(reference::bfloat16_row_encoder(formats::kE3M2), nullptr);
}

}  // namespace
}  // namespace kitchen
