#include "kitchen/ops/gemm.h"
#include "kitchen/base/error.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/reference/cpu_backend.h"
#include "support/compare.h"
#include "support/values.h"

#include <omp.h>

#include <cmath>

namespace kitchen {
namespace {

using testing::close;
using testing::grid_values;
using testing::poisoned_context;
using testing::same_bits;
using testing::tensor_of;
using testing::unit_roundoff;
using testing::values_of;

constexpr DType kDTypes[] = {DType::float32, DType::bfloat16, DType::float16};

/// alpha · a·bᵀ + bias + former in fp64 for one item of a batch.
std::vector<double> oracle(const std::vector<double>& a, const std::vector<double>& b,
                           std::int64_t m, std::int64_t n, std::int64_t k, double alpha = 1.0,
                           const std::vector<double>& bias = {},
                           const std::vector<double>& former = {}) {
  std::vector<double> d;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0.0;
      for (std::int64_t l = 0; l < k; ++l) {
        sum += a[static_cast<std::size_t>(i * k + l)] * b[static_cast<std::size_t>(j * k + l)];
      }
      sum *= alpha;
      if (!bias.empty()) sum += bias[static_cast<std::size_t>(j)];
      if (!former.empty()) sum += former[d.size()];
      d.push_back(sum);
    }
  }
  return d;
}

/// Values are multiples of 1/32 of size up to 4, so that Σ|a||b| <= 16·k and fp32 sums err by at
/// most (k + 3)·2^-24·16·k; the output rounding adds its unit roundoff.
double sum_bound(std::int64_t k) {
  return static_cast<double>((k + 3) * 16 * k) * 0x1p-24;
}

struct Sizes {
  std::int64_t m, n, k;
};

// labels: ops.gemm G01 G03
TEST(Gemm, EqualsTheOracleForRaggedSizesAllDtypesAndVariants) {
  const ContextPtr context = poisoned_context();
  // 1, primes, a tile and one more or less of it, K = 767 and K = 712.
  for (const Sizes s : {Sizes{1, 1, 1},
                        {7, 13, 5},
                        {384, 33, 16},
                        {385, 383, 3},
                        {20, 31, 767},
                        {41, 89, 712},
                        {1, 800, 64},
                        {700, 1, 64}}) {
    const auto a = grid_values(s.m * s.k, 1);
    const auto b = grid_values(s.n * s.k, 2);
    const auto expected = oracle(a, b, s.m, s.n, s.k);
    for (const DType dtype : kDTypes) {
      for (const DType out : kDTypes) {
        for (const char* variant : {"openblas", "exact"}) {
          ops::GemmOptions options;
          options.variant = variant;
          const Tensor d = ops::gemm(tensor_of(context, {s.m, s.k}, dtype, a),
                                     tensor_of(context, {s.n, s.k}, dtype, b), out, options);
          EXPECT_EQ(d.dtype(), out);
          EXPECT_TRUE(close(expected, values_of(d), sum_bound(s.k), unit_roundoff(out)))
              << s.m << "x" << s.n << "x" << s.k << " " << to_string(dtype) << " " << variant;
        }
      }
    }
  }
}

}  // namespace
}  // namespace kitchen
