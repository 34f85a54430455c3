#pragma once

#include "kitchen/base/tensor.h"

#include <gtest/gtest.h>

#include <vector>

/// @file  compare.h
/// @brief The three comparers of the test suite. Each asks "is it good", so that a NaN fails.

namespace kitchen::testing {

/// Equal dtype, shape and bytes in row-major order. NaN equals NaN of the same bits only.
::testing::AssertionResult same_bits(const Tensor& expected, const Tensor& actual);

/// |actual - expected| <= atol + rtol·|expected| for every element; NaN or Inf on either side fails.
/// Works on float32, float16 and bfloat16; shapes must agree.
::testing::AssertionResult close(const Tensor& expected, const Tensor& actual, double atol,
                                 double rtol);
::testing::AssertionResult close(const std::vector<double>& expected,
                                 const std::vector<double>& actual, double atol, double rtol);

/// calc_diff(expected, actual) = 1 - 2·Σab / (Σa² + Σb²) <= bound, all values finite.
::testing::AssertionResult error_below(const std::vector<double>& expected,
                                       const std::vector<double>& actual, double bound);
::testing::AssertionResult error_below(const Tensor& expected, const Tensor& actual, double bound);

/// Elements as fp64 in row-major order. float32, float16, bfloat16.
std::vector<double> values_of(const Tensor& tensor);

}  // namespace kitchen::testing
