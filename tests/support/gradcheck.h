#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

/// @file  gradcheck.h
/// @brief Gradients of an op against central differences of an fp64 oracle that the test writes
/// itself.

namespace kitchen::testing {

/// A scalar function of several inputs, each flattened in row-major order. Must not use our
/// kernels.
using ScalarOracle = std::function<double(const std::vector<std::vector<double>>&)>;

/// d oracle / d inputs[i][j] by (f(x + h) - f(x - h)) / 2h with h = step · max(1, |x|). The error
/// is about h²·|f'''|/6 + 1e-16·|f|/h: below 1e-9 for functions of order one and the default step.
std::vector<std::vector<double>> central_differences(const ScalarOracle& oracle,
                                                     std::vector<std::vector<double>> inputs,
                                                     double step = 1e-5);

/// |analytic - difference quotient| <= atol + rtol·|difference quotient| for every element of every
/// input. An empty `analytic[i]` says that inputs[i] is not differentiated; NaN fails. To test a
/// backward kernel with an arbitrary dy, let the oracle return Σ dy·y.
::testing::AssertionResult gradients_match(const ScalarOracle& oracle,
                                           const std::vector<std::vector<double>>& inputs,
                                           const std::vector<std::vector<double>>& analytic,
                                           double atol, double rtol, double step = 1e-5);

}  // namespace kitchen::testing
