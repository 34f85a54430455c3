#include "support/compare.h"

#include "kitchen/reference/cpu_backend.h"

#include <cmath>
#include <limits>

namespace kitchen::testing {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

Tensor row(const std::vector<float>& values) {
  static const ContextPtr context = reference::make_cpu_context();
  return Tensor::from_vector(context, {static_cast<std::int64_t>(values.size())}, values);
}

// labels: comparer
TEST(SameBits, TellsMinusZeroFromZeroAndAcceptsEqualNaN) {
  EXPECT_TRUE(same_bits(row({1, kNaN, -0.0f}), row({1, kNaN, -0.0f})));
  EXPECT_FALSE(same_bits(row({0.0f}), row({-0.0f})));
  EXPECT_FALSE(same_bits(row({1, 2}), row({1})));
  EXPECT_FALSE(same_bits(Tensor(), row({1})));
  EXPECT_TRUE(same_bits(row({}), row({})));
}

// labels: comparer
TEST(Close, FailsOnNaNAndInfinityOnEitherSide) {
  EXPECT_TRUE(close(row({1, 2}), row({1, 2.01f}), 0.02, 0));
  EXPECT_FALSE(close(row({1, 2}), row({1, 2.03f}), 0.02, 0));
  EXPECT_FALSE(close(row({1}), row({kNaN}), 1e9, 1e9));
  EXPECT_FALSE(close(row({kNaN}), row({kNaN}), 1e9, 1e9));
  EXPECT_FALSE(close(row({kInf}), row({kInf}), 1e9, 1e9));
  EXPECT_FALSE(close(row({1}), row({kInf}), 1e9, 1e9));
  EXPECT_FALSE(close(row({1}), row({1, 1}), 1, 1));
  EXPECT_TRUE(close(row({}), row({}), 0, 0));
}

// labels: comparer
TEST(ErrorBelow, FailsOnNaNAndWrongSize) {
  EXPECT_TRUE(error_below(row({1, 2, 3}), row({1, 2, 3}), 1e-12));
  EXPECT_FALSE(error_below(row({1, 2, 3}), row({1, 2, kNaN}), 1e9));
  EXPECT_FALSE(error_below(row({1, 2, 3}), row({3, 2, 1}), 1e-3));
  EXPECT_FALSE(error_below(row({1}), row({1, 2}), 1));
  EXPECT_TRUE(error_below(row({}), row({}), 0));
}

}  // namespace
}  // namespace kitchen::testing
