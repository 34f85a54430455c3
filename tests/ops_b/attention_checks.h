#pragma once

#include "kitchen/ops/flash_attention.h"
#include "ops_b/attention_oracle.h"
#include "ops_b/test_tensors.h"

#include <gtest/gtest.h>

/// @file  attention_checks.h
/// @brief Operands of a flash attention test, and the comparison of all its outputs with the fp64
/// oracle.

namespace kitchen::testing {

struct AttentionOperands {
  Tensor q, k, v, dout;
};

struct AttentionSizes {
  std::int64_t sq, sk, b, np, ng, d;
};

inline AttentionOperands operands_of(const ContextPtr& context, const AttentionSizes& n,
                                     DType dtype) {
  return {normal_tensor(context, {n.sq, n.b, n.np, n.d}, dtype, 1),
          normal_tensor(context, {n.sk, n.b, n.ng, n.d}, dtype, 2),
          normal_tensor(context, {n.sk, n.b, n.ng, n.d}, dtype, 3),
          normal_tensor(context, {n.sq, n.b, n.np, n.d}, dtype, 4)};
}

inline Heads heads_of(const Tensor& x) {
  return {x.dim(0), x.dim(1), x.dim(2), x.dim(3), values_of(x)};
}

inline OracleResult oracle_of(const AttentionOperands& o,
                              const ops::FlashAttentionOptions& options) {
  return attention_oracle(heads_of(o.q), heads_of(o.k), heads_of(o.v), heads_of(o.dout), options);
}

inline ops::FlashAttentionOptions options_of(std::int64_t d, bool causal, bool natural_exp) {
  ops::FlashAttentionOptions options;
  options.scale = 1.0f / std::sqrt(static_cast<float>(d));
  options.causal = causal;
  options.natural_exp = natural_exp;
  return options;
}

/// fp32: scores of at most 8 in size carry d / 2 units of relative error at most (random signs), so
/// p carries 8·d/2 + 8 units, and o, dv sums of p·4 as much; dq and dk multiply it by |k| and the
/// number of keys that matter, 16 at most in these cases. 16-bit dtypes: the bounds of numerics.md
/// S8.5 with 16-bit outputs.
inline ::testing::AssertionResult matches(const Heads& expected, const Tensor& actual,
                                          std::int64_t d) {
  if (actual.dtype() == DType::float32) {
    const double units = 4 * static_cast<double>(d) + 8;
    return close(expected.values, values_of(actual), 16 * units * kUnit32, 16 * units * kUnit32);
  }
  return error_below(expected.values, values_of(actual), 2e-5);
}

/// lse to the error of the scores; -inf where no key is seen.
inline void expect_lse(const std::vector<double>& expected, const Tensor& lse, std::int64_t d) {
  const std::vector<double> actual = values_of(lse);
  ASSERT_EQ(expected.size(), actual.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::isinf(expected[i])) {
      EXPECT_EQ(actual[i], -INFINITY) << i;
    } else {
      EXPECT_NEAR(actual[i], expected[i], (4 * static_cast<double>(d) + 8) * kUnit32) << i;
    }
  }
}

inline void expect_all(const OracleResult& want, const AttentionOperands& o,
                       const ops::FlashAttentionOptions& options) {
  const std::int64_t d = o.q.dim(3);
  const ops::FlashAttentionResult result = ops::flash_attention_forward(o.q, o.k, o.v, options);
  EXPECT_TRUE(matches(want.o, result.o, d));
  expect_lse(want.lse, result.lse, d);
  const ops::FlashAttentionGradients gradients =
      ops::flash_attention_backward(o.dout, o.q, o.k, o.v, result.o, result.lse, options);
  EXPECT_TRUE(matches(want.dq, gradients.dq, d));
  EXPECT_TRUE(matches(want.dk, gradients.dk, d));
  EXPECT_TRUE(matches(want.dv, gradients.dv, d));
}

inline void expect_all_as_oracle(const AttentionOperands& o,
                                 const ops::FlashAttentionOptions& options) {
  expect_all(oracle_of(o, options), o, options);
}

}  // namespace kitchen::testing
