#include "formats/all_specs.h"
#include "kitchen/formats/codec.h"
#include "kitchen/ops/quantize.h"
#include "kitchen/reference/cpu_backend.h"
#include "kitchen/reference/matrix_tile.h"
#include "support/compare.h"
#include "support/values.h"

#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace kitchen {
namespace {

using formats::FloatSpec;
using testing::same_bits;

bool is_finite_code(std::uint32_t code, const FloatSpec& spec) {
  if (spec.is_integer()) return code != 0x80u;  // -128 is never made
  return (code & (spec.sign_mask() - 1u)) <= static_cast<std::uint32_t>(spec.max_code);
}

// labels: formats.encode formats.decode
TEST(CodecProperty, EveryFiniteCodeSurvivesTheRoundTrip) {
  for (const FloatSpec& spec : formats::all_formats()) {
    for (std::uint32_t code = 0; code < 1u << spec.bits(); ++code) {
      if (!is_finite_code(code, spec)) continue;
      EXPECT_EQ(formats::encode(formats::decode(code, spec), spec), code) << spec.name;
    }
  }
}

// labels: formats.encode
TEST(CodecProperty, TheErrorIsAtMostHalfASpacing) {
  for (const FloatSpec& spec : formats::all_formats()) {
    EXPECT_TRUE(rc::check(std::string("half spacing ") + spec.name, [spec] {
      const double largest = static_cast<double>(formats::max_value(spec));
      const auto part = *rc::gen::inRange<std::int64_t>(-(1 << 30), 1 << 30);
      const int down = *rc::gen::inRange(0, 20);
      const auto x =
          static_cast<float>(std::ldexp(largest * static_cast<double>(part), -30 - down));
      // Spacing 2^(exponent - mantissa bits), that of the subnormals below the smallest normal.
      int exponent = x == 0.0f ? -1000 : std::ilogb(x);
      exponent = std::max(exponent, 1 - spec.bias);
      const double spacing =
          spec.is_integer() ? 1.0 : std::ldexp(1.0, exponent - spec.mantissa_bits);
      const double back = static_cast<double>(formats::decode(formats::encode(x, spec), spec));
      RC_ASSERT(std::fabs(back - static_cast<double>(x)) <= spacing / 2);
    }));
  }
}

/// Numbers half-way between two neighbours of the format, of both signs.
std::vector<float> ties_of(const FloatSpec& spec) {
  std::vector<float> ties;
  for (std::uint32_t code = 0; code < static_cast<std::uint32_t>(spec.max_code); ++code) {
    const float middle = (formats::decode(code, spec) + formats::decode(code + 1, spec)) / 2;
    ties.insert(ties.end(), {middle, -middle});
  }
  return ties;
}

// labels: formats.encode
TEST(CodecProperty, TiesGoToTheEvenCode) {
  for (const FloatSpec& spec : formats::all_formats()) {
    std::uint32_t below = 0;
    for (const float tie : ties_of(spec)) {
      const double code = static_cast<double>(formats::decode(formats::encode(tie, spec), spec));
      const std::uint32_t even = below % 2 == 0 ? below : below + 1;
      const double expected = static_cast<double>(formats::decode(even, spec));
      EXPECT_EQ(code, tie < 0 ? -expected : expected) << spec.name << " " << tie;
      if (tie < 0) ++below;
    }
  }
}

// labels: formats.encode
TEST(CodecProperty, RowsEncodeAnyBitsAsSingleElements) {
  std::vector<float> any;
  std::uint32_t bits = 0x9E3779B9u;
  for (int i = 0; i < 100000; ++i, bits += 2654435761u) any.push_back(float_from_bits(bits));
  for (const FloatSpec& spec : formats::all_formats()) {
    std::vector<float> values = ties_of(spec);  // any bits are hardly ever a tie
    values.insert(values.end(), any.begin(), any.end());
    std::vector<std::uint8_t> codes(values.size());
    const auto n = static_cast<std::int64_t>(values.size());
    reference::row_encoder(spec)(spec, values.data(), 1.0f, codes.data(), n);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(codes[i], formats::encode(values[i], spec)) << spec.name << " " << values[i];
    }
  }
}

// labels: formats.block_scale N10
TEST(ScaleProperty, TheLargestCodeCoversTheAmaxUnlessTheRuleSaturates) {
  using formats::ScaleRule;
  for (const FloatSpec& spec :
       {formats::kE4M3, formats::kE5M2, formats::kE2M1, formats::kE2M3, formats::kE3M2}) {
    for (const ScaleRule rule :
         {ScaleRule::float32, ScaleRule::float32_pow2, ScaleRule::deepgemm,
          ScaleRule::deepgemm_ue8m0, ScaleRule::e8m0_roundup, ScaleRule::e8m0_ocp_floor}) {
      EXPECT_TRUE(rc::check(to_string(rule) + " " + spec.name, [spec, rule] {
        // Within 2^±40, where no scale is clamped.
        const auto exponent = *rc::gen::inRange<std::uint32_t>(127 - 40, 127 + 40);
        const auto mantissa = *rc::gen::inRange<std::uint32_t>(0, 1u << 23);
        const float amax = float_from_bits(exponent << 23 | mantissa);
        const auto scale =
            formats::block_scale(rule, spec, amax, false, 0.0f, formats::kFloatMax, 0.0f).scale;
        const double scaled = static_cast<double>(amax) * static_cast<double>(scale);
        double bound = static_cast<double>(formats::max_value(spec));
        // fp32 divisions: one rounding, and two in deepgemm; ocp_floor keeps the exponent of the
        // largest value alone, so that up to twice that power saturates (S1.4).
        if (rule == ScaleRule::float32) bound *= 1 + 0x1p-23;
        if (rule == ScaleRule::deepgemm) bound *= 1 + 0x1p-22;
        // roundup compares amax · fp32(1/max): two roundings before the power of two.
        if (rule == ScaleRule::e8m0_roundup) bound *= 1 + 0x1p-22;
        if (rule == ScaleRule::deepgemm_ue8m0) bound *= 1 + 0x1p-23;
        if (rule == ScaleRule::e8m0_ocp_floor) bound = std::ldexp(2.0, spec.max_exponent);
        RC_ASSERT(scaled <= bound);
      }));
    }
  }
}

/// A matrix with rows and columns up to `limit` of any bits, NaN and Inf among them, and its
/// transpose in rows of its own.
struct TwoWays {
  Tensor matrix;
  Tensor transpose;
};

TwoWays draw_two_ways(const ContextPtr& context, std::int64_t limit) {
  const auto rows = *rc::gen::inRange<std::int64_t>(0, limit);
  const auto cols = *rc::gen::inRange<std::int64_t>(0, limit);
  auto bits = *rc::gen::arbitrary<std::uint32_t>();
  const bool any = *rc::gen::arbitrary<bool>();
  std::vector<float> values(static_cast<std::size_t>(rows * cols));
  std::vector<float> transposed(values.size());
  for (std::int64_t i = 0; i < rows * cols; ++i, bits += 2654435761u) {
    // Else exponents around that of 1, where no block is special.
    const float value = float_from_bits(any ? bits : (bits & 0x87FFFFFFu) | 0x38000000u);
    values[static_cast<std::size_t>(i)] = value;
    transposed[static_cast<std::size_t>(i % cols * rows + i / cols)] = value;
  }
  return {Tensor::from_vector(context, {rows, cols}, values),
          Tensor::from_vector(context, {cols, rows}, transposed)};
}

// labels: ops.quantize ops.transpose_quantized
TEST(QuantizeProperty, TheTransposedCopyIsTheQuantizedTranspose) {
  const ContextPtr context = testing::poisoned_context();
  for (const std::string& scheme : quantize_scheme_names()) {
    const QuantizeSpec spec = quantize_spec_from_scheme_name(scheme);
    const bool square = spec.granularity.rows == spec.granularity.cols;
    EXPECT_TRUE(rc::check("transpose under " + scheme, [&] {
      const TwoWays x = draw_two_ways(context, 150);
      const QuantizedMatrix expected = ops::quantize(x.transpose, spec);
      const QuantizedMatrix strided = ops::quantize(x.matrix.transpose(0, 1), spec);
      RC_ASSERT(static_cast<bool>(same_bits(expected.codes, strided.codes)));
      RC_ASSERT(static_cast<bool>(same_bits(expected.scale_inv, strided.scale_inv)));
      if (!square || spec.stochastic) return;
      const QuantizedMatrix moved = ops::transpose_quantized(ops::quantize(x.matrix, spec));
      RC_ASSERT(static_cast<bool>(same_bits(expected.codes, moved.codes)));
      RC_ASSERT(static_cast<bool>(same_bits(expected.scale_inv, moved.scale_inv)));
    }));
  }
}

// labels: ops.quantize
TEST(QuantizeProperty, BlocksDownTheRowsAreThoseAlongTheTranspose) {
  const ContextPtr context = testing::poisoned_context();
  for (const FloatSpec& format :
       {formats::kE4M3, formats::kE5M2, formats::kE2M1, formats::kE2M3, formats::kE3M2}) {
    const QuantizeSpec down{format, formats::kBlock32x1, formats::ScaleRule::e8m0_roundup};
    QuantizeSpec along = down;
    along.granularity = formats::kBlock1x32;
    EXPECT_TRUE(rc::check(to_string(down), [&] {
      const TwoWays x = draw_two_ways(context, 80);
      const QuantizedMatrix a = ops::quantize(x.matrix, down);
      const QuantizedMatrix b = ops::quantize(x.transpose, along);
      const Tensor back = ops::dequantize(b, DType::float32).transpose(0, 1);
      RC_ASSERT(static_cast<bool>(same_bits(back, ops::dequantize(a, DType::float32))));
    }));
  }
}

// labels: ops.quantize formats.encode_e2m1_stochastic
TEST(StochasticProperty, TheMeanLiesWithinFourStandardErrors) {
  const ContextPtr context = reference::make_cpu_context();
  constexpr std::int64_t kCount = 1 << 16;
  for (const float value : {0.3f, 1.2f, -2.7f, 5.1f}) {
    // The first element fixes amax 6, so that block and matrix scale are 1 but for fp32 roundings.
    std::vector<float> values(kCount * 16, value);
    for (std::size_t i = 0; i < values.size(); i += 16) values[i] = 6.0f;
    ops::QuantizeCall call;
    call.rounding = {42, 3, 128};
    const QuantizedMatrix q = ops::quantize(Tensor::from_vector(context, {kCount, 16}, values),
                                            quantize_spec_from_scheme_name("nvfp4_row_sr"), call);
    const std::vector<float> back = ops::dequantize(q, DType::float32).to_vector<float>();
    double sum = 0.0;
    double squares = 0.0;
    double count = 0.0;
    for (std::size_t i = 0; i < back.size(); ++i) {
      if (i % 16 == 0) continue;
      const double v = static_cast<double>(back[i]);
      sum += v;
      squares += v * v;
      count += 1.0;
    }
    const double mean = sum / count;
    const double error = std::sqrt((squares / count - mean * mean) / count);
    EXPECT_LE(std::fabs(mean - static_cast<double>(value)), 4 * error) << value;
  }
}

// labels: formats.hadamard
TEST(HadamardProperty, TheTransformIsOrthogonal) {
  std::vector<float> columns(256, 0.0f);
  for (std::size_t i = 0; i < 16; ++i) columns[i * 16 + i] = 1.0f;
  reference::hadamard16_rows(columns.data(), 16, 16, 16, DType::float32);
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t j = 0; j < 16; ++j) {
      double dot = 0.0;
      for (std::size_t l = 0; l < 16; ++l) {
        dot += static_cast<double>(columns[i * 16 + l]) * static_cast<double>(columns[j * 16 + l]);
      }
      EXPECT_EQ(dot, i == j ? 1.0 : 0.0) << i << " " << j;
    }
  }
}

}  // namespace
}  // namespace kitchen
