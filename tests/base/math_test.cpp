#include "kitchen/base/math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace kitchen {
namespace {

using Float32Function = float (*)(float);
using Float64Function = double (*)(double);

/// Largest relative error over every 977th float (977 is prime to all mantissa patterns) whose
/// exact result is a normal float. A result that is not finite where the exact one is counts as
/// infinite error.
double largest_relative_error(Float32Function function, Float64Function exact) {
  double worst = 0.0;
  for (std::uint64_t bits = 0; bits < 0x100000000u; bits += 977) {
    const float x = float_from_bits(static_cast<std::uint32_t>(bits));
    if (!std::isfinite(x)) continue;
    const double want = exact(x);
    const bool is_normal = std::isnormal(static_cast<float>(want));
    if (!is_normal) continue;
    const double error = std::fabs(function(x) - want) / std::fabs(want);
    worst = error <= worst ? worst : std::max(error, error == error ? error : HUGE_VAL);
  }
  return worst;
}

// labels: base.math
TEST(Math, ErrorsStayWithinTheStatedBounds) {
  EXPECT_LE(largest_relative_error(&exp_exact, [](double x) { return std::exp(x); }), 9e-8);
  EXPECT_LE(largest_relative_error(&exp2_exact, [](double x) { return std::exp2(x); }), 9e-8);
  EXPECT_LE(largest_relative_error(&tanh_exact, [](double x) { return std::tanh(x); }), 2e-7);
  EXPECT_LE(largest_relative_error(&erf_exact, [](double x) { return std::erf(x); }), 9e-8);
  EXPECT_LE(largest_relative_error(&log_exact, [](double x) { return std::log(x); }), 9e-8);
}

// labels: base.math
TEST(Math, ResultsThatWouldBeSubnormalAreZero) {
  for (float x = -150.0f; x < -80.0f; x += 0.001f) {
    const double want = std::exp(static_cast<double>(x));
    const bool is_normal = want >= 0x1p-126;
    EXPECT_NEAR(exp_exact(x), is_normal ? want : 0.0, is_normal ? 9e-8 * want : 0.0) << x;
  }
  EXPECT_EQ(exp2_exact(-126.0f), 0x1p-126f);
  EXPECT_EQ(exp2_exact(std::nextafter(-126.0f, -200.0f)), 0.0f);
}

// labels: base.math
TEST(Math, EndsOfTheRange) {
  EXPECT_EQ(exp_exact(0.0f), 1.0f);
  EXPECT_EQ(exp_exact(-0.0f), 1.0f);
  EXPECT_EQ(exp_exact(-INFINITY), 0.0f);
  EXPECT_EQ(exp_exact(-104.0f), 0.0f);
  EXPECT_TRUE(std::isfinite(exp_exact(88.7228f)));
  EXPECT_EQ(exp_exact(88.73f), INFINITY);
  EXPECT_EQ(exp_exact(INFINITY), INFINITY);
  for (int n = -126; n < 128; ++n) {
    EXPECT_EQ(exp2_exact(static_cast<float>(n)), std::ldexp(1.0f, n)) << n;
  }
  EXPECT_EQ(exp2_exact(-INFINITY), 0.0f);
  EXPECT_EQ(exp2_exact(128.0f), INFINITY);
  EXPECT_EQ(tanh_exact(INFINITY), 1.0f);
  EXPECT_EQ(tanh_exact(-INFINITY), -1.0f);
  EXPECT_EQ(erf_exact(INFINITY), 1.0f);
  EXPECT_EQ(erf_exact(-INFINITY), -1.0f);
  EXPECT_EQ(bits_of(tanh_exact(-0.0f)), 0x80000000u);
  EXPECT_EQ(bits_of(erf_exact(-0.0f)), 0x80000000u);
  EXPECT_EQ(log_exact(0.0f), -INFINITY);
  EXPECT_EQ(log_exact(-0.0f), -INFINITY);
  EXPECT_EQ(log_exact(INFINITY), INFINITY);
  EXPECT_EQ(bits_of(log_exact(1.0f)), 0u);
  EXPECT_NEAR(log_exact(0x1p-149f), -149.0 * std::log(2.0), 1e-5);
  EXPECT_TRUE(std::isnan(log_exact(-1.0f)));
}

// labels: base.math
TEST(Math, NaNStaysNaN) {
  for (const float nan : {float_from_bits(0x7FC00000u), float_from_bits(0xFFC00001u)}) {
    EXPECT_TRUE(std::isnan(exp_exact(nan)));
    EXPECT_TRUE(std::isnan(exp2_exact(nan)));
    EXPECT_TRUE(std::isnan(tanh_exact(nan)));
    EXPECT_TRUE(std::isnan(erf_exact(nan)));
    EXPECT_TRUE(std::isnan(log_exact(nan)));
  }
}

// labels: base.math
TEST(Math, TanhAndErfAreOddAndNeverLeaveTheUnitInterval) {
  for (float x = 0.0f; x < 6.0f; x += 0.0007f) {
    EXPECT_EQ(tanh_exact(-x), -tanh_exact(x));
    EXPECT_EQ(erf_exact(-x), -erf_exact(x));
    EXPECT_LE(tanh_exact(x), 1.0f);
    EXPECT_LE(erf_exact(x), 1.0f);
  }
}

}  // namespace
}  // namespace kitchen
