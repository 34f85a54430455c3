#include "support/gradcheck.h"

#include <cmath>

namespace kitchen::testing {
namespace {

double oracle(const std::vector<std::vector<double>>& in) {
  return std::sin(in[0][0]) * in[1][0] + in[0][1] * in[0][1];
}

// labels: support.gradients_match
TEST(GradientsMatch, AcceptsTheRightGradientAndTellsWhichInputIsWrong) {
  const std::vector<std::vector<double>> at = {{0.3, -2.0}, {5.0}};
  // d/dx0 = cos(x0)·y, d/dx1 = 2·x1, d/dy = sin(x0).
  const std::vector<std::vector<double>> right = {{std::cos(0.3) * 5.0, -4.0}, {std::sin(0.3)}};
  EXPECT_TRUE(gradients_match(oracle, at, right, 1e-9, 0.0));
  std::vector<std::vector<double>> wrong = right;
  wrong[1][0] += 1e-6;
  const ::testing::AssertionResult result = gradients_match(oracle, at, wrong, 1e-9, 0.0);
  EXPECT_FALSE(result);
  EXPECT_NE(std::string(result.message()).find("input 1"), std::string::npos);
}

// labels: support.gradients_match
TEST(GradientsMatch, FailsOnNaNMissingGradientsAndWrongCounts) {
  const std::vector<std::vector<double>> at = {{0.3, -2.0}, {5.0}};
  EXPECT_FALSE(gradients_match(oracle, at, {{NAN, -4.0}, {}}, 1e9, 1e9));
  EXPECT_FALSE(gradients_match(oracle, at, {{1.0}, {}}, 1e9, 1e9));
  EXPECT_FALSE(gradients_match(oracle, at, {{}}, 1e9, 1e9));
  EXPECT_TRUE(gradients_match(oracle, at, {{}, {}}, 0.0, 0.0));
}

}  // namespace
}  // namespace kitchen::testing
