#include "support/gradcheck.h"

#include "support/compare.h"

#include <algorithm>
#include <cmath>

namespace kitchen::testing {

namespace {

std::vector<double> differences_of_input(const ScalarOracle& oracle,
                                         std::vector<std::vector<double>>& inputs,
                                         std::size_t input, double step) {
  std::vector<double> gradient;
  for (double& x : inputs[input]) {
    const double middle = x;
    const double h = step * std::max(1.0, std::fabs(middle));
    x = middle + h;
    const double above = oracle(inputs);
    x = middle - h;
    const double below = oracle(inputs);
    x = middle;
    // The distance that was really walked: middle ± h is rounded.
    gradient.push_back((above - below) / ((middle + h) - (middle - h)));
  }
  return gradient;
}

}  // namespace

std::vector<std::vector<double>> central_differences(const ScalarOracle& oracle,
                                                     std::vector<std::vector<double>> inputs,
                                                     double step) {
  std::vector<std::vector<double>> gradients;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    gradients.push_back(differences_of_input(oracle, inputs, i, step));
  }
  return gradients;
}

::testing::AssertionResult gradients_match(const ScalarOracle& oracle,
                                           const std::vector<std::vector<double>>& inputs,
                                           const std::vector<std::vector<double>>& analytic,
                                           double atol, double rtol, double step) {
  if (inputs.size() != analytic.size()) {
    return ::testing::AssertionFailure()
           << analytic.size() << " gradients for " << inputs.size() << " inputs";
  }
  std::vector<std::vector<double>> point = inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (analytic[i].empty() && !inputs[i].empty()) continue;
    const std::vector<double> expected = differences_of_input(oracle, point, i, step);
    const ::testing::AssertionResult result = close(expected, analytic[i], atol, rtol);
    if (!result) {
      return ::testing::AssertionFailure() << "gradient of input " << i << ": " << result.message();
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace kitchen::testing
