#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

/// @file  exact_product.h
/// @brief Matrix products in fp64 by the definition.

namespace kitchen::testing {

struct ExactProduct {
  std::vector<double> values;
  double largest_sum = 0.0;  ///< the largest Σ|a||b| of an element: what rounding errors are relative to
};

/// a·bᵀ of row-major a [m, k] and b [n, k].
inline ExactProduct exact_product(const std::vector<double>& a, const std::vector<double>& b,
                                  std::int64_t m, std::int64_t n, std::int64_t k) {
  ExactProduct product;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0.0;
      double size = 0.0;
      for (std::int64_t c = 0; c < k; ++c) {
        const double term =
            a[static_cast<std::size_t>(i * k + c)] * b[static_cast<std::size_t>(j * k + c)];
        sum += term;
        size += std::fabs(term);
      }
      product.values.push_back(sum);
      product.largest_sum = std::max(product.largest_sum, size);
    }
  }
  return product;
}

/// Row-major [rows, cols] -> [cols, rows].
inline std::vector<double> transposed(const std::vector<double>& x, std::int64_t rows,
                                      std::int64_t cols) {
  std::vector<double> result;
  for (std::int64_t c = 0; c < cols; ++c) {
    for (std::int64_t r = 0; r < rows; ++r) result.push_back(x[static_cast<std::size_t>(r * cols + c)]);
  }
  return result;
}

/// Sums of the columns of [rows, cols].
inline std::vector<double> column_sums(const std::vector<double>& x, std::int64_t cols) {
  std::vector<double> sums(static_cast<std::size_t>(cols), 0.0);
  for (std::size_t i = 0; i < x.size(); ++i) sums[i % static_cast<std::size_t>(cols)] += x[i];
  return sums;
}

}  // namespace kitchen::testing
