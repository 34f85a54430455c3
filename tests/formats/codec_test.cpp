#include "kitchen/formats/codec.h"

#include "formats/all_specs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kitchen::formats {
namespace {

using kitchen::testing::FormatRow;
using kitchen::testing::kAllSpecs;
using kitchen::testing::KnownCode;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// labels: formats.FloatSpec
TEST(FloatSpecs, EveryFormatIsInTheTableWithItsKnownCodes) {
  EXPECT_EQ(all_formats().size(), kAllSpecs.size());
  for (std::size_t i = 0; i < kAllSpecs.size(); ++i) {
    const FormatRow& row = kAllSpecs[i];
    EXPECT_EQ(row.spec, all_formats()[i]);
    for (const KnownCode& known : row.known) {
      EXPECT_EQ(decode(known.code, row.spec), known.value) << row.spec.name;
      EXPECT_EQ(encode(known.value, row.spec), known.code) << row.spec.name;
    }
    EXPECT_EQ(static_cast<int>(std::floor(std::log2(max_value(row.spec)))), row.spec.max_exponent);
  }
}

// labels: formats.decode N16
TEST(Decode, SubnormalCodesOfE4M3) {
  EXPECT_EQ(decode(0x01, kE4M3), 0.001953125f);
  EXPECT_EQ(decode(0x07, kE4M3), 0.013671875f);
  EXPECT_EQ(decode(0x08, kE4M3), 0.015625f);
  EXPECT_EQ(decode(0x81, kE4M3), -0.001953125f);
}

// labels: formats.encode N13
TEST(Encode, SaturatesByDefaultAndGivesNaNOnRequest) {
  const auto value = [](float x, bool saturate) {
    return decode(encode(x, kE4M3, saturate), kE4M3);
  };
  for (const float x : {448.0f, 464.0f, 465.0f, 1000.0f}) EXPECT_EQ(value(x, true), 448.0f);
  EXPECT_EQ(value(-1000.0f, true), -448.0f);
  EXPECT_EQ(encode(1000.0f, kE4M3), encode(1000.0f, kE4M3, true));
  EXPECT_EQ(value(448.0f, false), 448.0f);
  EXPECT_EQ(value(464.0f, false), 448.0f);
  for (const float x : {465.0f, 1000.0f, -1000.0f}) EXPECT_TRUE(std::isnan(value(x, false)));
}

// labels: formats.encode N15
TEST(Encode, InfinityAndNaNFollowTheTable) {
  struct Row {
    float x;
    bool saturate;
    std::uint32_t e4m3;
    std::uint32_t e5m2;
  };
  // numerics.md S1.1 and S1.2.
  const Row rows[] = {{kInf, true, 0x7E, 0x7B},  {-kInf, true, 0xFE, 0xFB},
                      {kNaN, true, 0x7F, 0x7F},  {-kNaN, true, 0x7F, 0x7F},
                      {kInf, false, 0x7F, 0x7C}, {-kInf, false, 0xFF, 0xFC},
                      {kNaN, false, 0x7F, 0x7F}};
  for (const Row& row : rows) {
    EXPECT_EQ(encode(row.x, kE4M3, row.saturate), row.e4m3) << row.x;
    EXPECT_EQ(encode(row.x, kE5M2, row.saturate), row.e5m2) << row.x;
  }
}

/// Nearest value by search in the table of the format, ties to the even code; needs no bit of the
/// encoder.
std::uint32_t encode_by_search(float x, const FloatSpec& spec) {
  // Clamped first: far outside, all entries are equally far in fp64.
  const double a =
      std::min(std::fabs(static_cast<double>(x)), static_cast<double>(max_value(spec)));
  std::uint32_t best = 0;
  double distance = a;
  for (std::uint32_t code = 1; code <= static_cast<std::uint32_t>(spec.max_code); ++code) {
    const double d = std::fabs(static_cast<double>(decode(code, spec)) - a);
    if (d < distance || (d == distance && code % 2 == 0)) {
      best = code;
      distance = d;
    }
  }
  return best | (std::signbit(x) ? spec.sign_mask() : 0u);
}

// labels: formats.encode
TEST(Encode, EqualsTheNearestTableEntryOverTheWholeRange) {
  for (const FormatRow& row : kAllSpecs) {
    if (row.spec.is_integer()) continue;
    // A stride that is coprime to 2^32 walks through all exponents and signs.
    std::uint32_t bits = 0x12345u;
    for (int i = 0; i < 20000; ++i, bits += 2654435761u) {
      const float x = float_from_bits(bits);
      if (!std::isfinite(x)) continue;
      ASSERT_EQ(encode(x, row.spec), encode_by_search(x, row.spec)) << row.spec.name << " " << x;
    }
  }
}

// labels: formats.encode
TEST(Encode, IntegersRoundToEvenAndClampSymmetrically) {
  EXPECT_EQ(encode(2.5f, kInt8), 2u);
  EXPECT_EQ(encode(3.5f, kInt8), 4u);
  EXPECT_EQ(encode(-0.4f, kInt8), 0u);
  EXPECT_EQ(encode(-1000.0f, kInt8), 0x81u);
  EXPECT_EQ(encode(kInf, kInt8), 0x7Fu);
  EXPECT_EQ(encode(kNaN, kInt8), 0u);
}

// labels: formats.encode
TEST(HalfFormats, EveryFiniteCodeSurvivesTheRoundTrip) {
  for (std::uint32_t code = 0; code < 65536; ++code) {
    const auto bits = static_cast<std::uint16_t>(code);
    if ((code & 0x7C00u) != 0x7C00u) {
      ASSERT_EQ(float_to_fp16(fp16_to_float(bits)), bits);
    }
    if ((code & 0x7F80u) != 0x7F80u) {
      ASSERT_EQ(float_to_bf16(bf16_to_float(bits)), bits);
    }
  }
  EXPECT_EQ(fp16_to_float(0x7C00), kInf);
  EXPECT_EQ(fp16_to_float(0xFC00), -kInf);
  EXPECT_TRUE(std::isnan(fp16_to_float(0x7E00)));
  EXPECT_EQ(float_to_fp16(65520.0f), 0x7C00);
  EXPECT_EQ(float_to_bf16(kInf), 0x7F80);
}

// labels: formats.e8m0 N08
TEST(ScaleByte, EndsOfTheRangeDecodeAsDefined) {
  EXPECT_EQ(e8m0_decode(0), std::ldexp(1.0f, -127));
  EXPECT_EQ(e8m0_decode(1), std::ldexp(1.0f, -126));
  EXPECT_EQ(e8m0_decode(127), 1.0f);
  EXPECT_EQ(e8m0_decode(254), std::ldexp(1.0f, 127));
  EXPECT_TRUE(std::isnan(e8m0_decode(255)));
  EXPECT_EQ(decode(0x38, kE4M3) * e8m0_decode(0), std::ldexp(1.0f, -127));
}

// labels: formats.e8m0 N10 N12
TEST(ScaleByte, RoundupNeverSaturatesAndFloorMay) {
  const float reciprocal = 1.0f / 448.0f;
  EXPECT_EQ(e8m0_roundup(150.0f * reciprocal), 126u);
  EXPECT_EQ(e8m0_ocp_floor(150.0f, kE4M3.max_exponent), 126u);
  EXPECT_EQ(e8m0_roundup(500.0f * reciprocal), 128u);
  EXPECT_EQ(e8m0_ocp_floor(500.0f, kE4M3.max_exponent), 127u);
  // Just below 2: a logarithm in fp32 would round up to 1.
  EXPECT_EQ(e8m0_ocp_floor(1.9999f, kE4M3.max_exponent), 119u);
  EXPECT_EQ(e8m0_ocp_floor(float_from_bits(0x3FFFFFFFu), kE4M3.max_exponent), 119u);
}

// labels: formats.encode_e2m1_stochastic
TEST(StochasticRounding, IsUnbiasedAndKeepsRepresentableValues) {
  for (std::uint32_t code = 0; code < 16; ++code) {
    const float value = decode(code, kE2M1);
    for (const std::uint32_t r : {0u, 0x80000000u, 0xFFFFFFFFu}) {
      EXPECT_EQ(encode_e2m1_stochastic(value, r), code);
    }
  }
  // All 2^24 thresholds are hit equally by r = i·2^8, so sampling every 2^12th gives the mean
  // within 2^-12.
  for (const float y : {0.1f, 0.75f, -1.2f, 2.25f, 3.9f, -5.5f}) {
    double sum = 0.0;
    for (std::uint32_t i = 0; i < 4096; ++i) {
      sum += static_cast<double>(decode(encode_e2m1_stochastic(y, i << 20), kE2M1));
    }
    EXPECT_NEAR(sum / 4096, static_cast<double>(y), 2.0 / 4096) << y;
  }
}

}  // namespace
}  // namespace kitchen::formats
