#include "kitchen/ops/flash_attention.h"

#include "ops_b/attention_checks.h"

#include <gtest/gtest.h>

namespace kitchen::testing {
namespace {

using Values = std::vector<double>;
using ops::FlashAttentionOptions;

// labels: ops.flash_attention A01
TEST(FlashAttention, CausalIsAlignedBottomRightAndEmptyRowsAreZero) {
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    const AttentionOperands o = operands_of(poisoned_context(), {5, 2, 1, 1, 1, 8}, dtype);
    const FlashAttentionOptions options = options_of(8, true, false);
    const ops::FlashAttentionResult r = ops::flash_attention_forward(o.q, o.k, o.v, options);
    const Values out = values_of(r.o);
    const Values lse = values_of(r.lse);
    const Values v = values_of(o.v);
    for (std::size_t i = 0; i < 3 * 8; ++i) EXPECT_EQ(out[i], 0.0);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(lse[i], -INFINITY);
    // Row 3 sees key 0 alone.
    for (std::size_t c = 0; c < 8; ++c) EXPECT_EQ(out[3 * 8 + c], v[c]);
    const ops::FlashAttentionGradients g =
        ops::flash_attention_backward(o.dout, o.q, o.k, o.v, r.o, r.lse, options);
    const Values dq = values_of(g.dq);
    for (std::size_t i = 0; i < 3 * 8; ++i) EXPECT_EQ(dq[i], 0.0);
    // dS of row 4 is a difference of two dP: relative bounds on 16-bit gradients say nothing about
    // one row.
    if (dtype == DType::float32) expect_all_as_oracle(o, options);
    for (const Tensor& gradient : {g.dq, g.dk, g.dv}) {
      for (const double value : values_of(gradient)) EXPECT_TRUE(std::isfinite(value));
    }
  }
}

// labels: ops.flash_attention A03
TEST(FlashAttention, RowWhoseScoresAreAllMinusInfinityIsZero) {
  const ContextPtr context = poisoned_context();
  // 1e30 · -1e30 overflows to -inf for every key of query 0 only.
  const Tensor q = tensor_of(context, {2, 1, 1, 1}, {1e30, 0.0}, DType::float32);
  const Tensor k = tensor_of(context, {2, 1, 1, 1}, {-1e30, -1e30}, DType::float32);
  const Tensor v = tensor_of(context, {2, 1, 1, 1}, {3.0, 5.0}, DType::float32);
  const FlashAttentionOptions options = options_of(1, false, true);
  const ops::FlashAttentionResult r = ops::flash_attention_forward(q, k, v, options);
  EXPECT_EQ(values_of(r.o), (Values{0.0, 4.0}));
  EXPECT_EQ(values_of(r.lse)[0], -INFINITY);
  const ops::FlashAttentionGradients g =
      ops::flash_attention_backward(v, q, k, v, r.o, r.lse, options);
  EXPECT_EQ(values_of(g.dq)[0], 0.0);
  EXPECT_EQ(values_of(g.dv), (Values{2.5, 2.5}));
}

// labels: ops.flash_attention A07
TEST(FlashAttention, LargeLogitsDoNotOverflow) {
  for (const bool natural_exp : {false, true}) {
    const ContextPtr context = poisoned_context();
    const Tensor q = tensor_of(context, {1, 1, 1, 3}, {1, 0, 0}, DType::float32);
    const Tensor k =
        tensor_of(context, {3, 1, 1, 3}, {151.29, 0, 0, 150, 0, 0, -200, 0, 0}, DType::float32);
    const Tensor v = tensor_of(context, {3, 1, 1, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1}, DType::float32);
    FlashAttentionOptions options = options_of(1, false, natural_exp);
    const ops::FlashAttentionResult r = ops::flash_attention_forward(q, k, v, options);
    EXPECT_TRUE(close({0.784, 0.216, 0.0}, values_of(r.o), 1e-3, 0.0));
    const ops::FlashAttentionGradients g =
        ops::flash_attention_backward(v.slice(0, 0, 1), q, k, v, r.o, r.lse, options);
    // p0·(1 - p0) = 0.1694 between the first two keys, times their distance 1.29.
    EXPECT_NEAR(values_of(g.dq)[0], 0.1694 * 1.29, 1e-3);
  }
}

// labels: ops.flash_attention A08
TEST(FlashAttention, Fp16ProductsDoNotOverflow) {
  const ContextPtr context = poisoned_context();
  const Tensor q = tensor_of(context, {1, 1, 1, 128}, Values(128, 256.0), DType::float16);
  const Tensor k = tensor_of(context, {4, 1, 1, 128}, Values(512, 256.0), DType::float16);
  Values v(512);
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>(i / 128 + 1);
  const ops::FlashAttentionResult r = ops::flash_attention_forward(
      q, k, tensor_of(context, {4, 1, 1, 128}, v, DType::float16), options_of(128, false, false));
  EXPECT_EQ(values_of(r.o), Values(128, 2.5));
}

// labels: ops.flash_attention A13
TEST(FlashAttention, WindowAsLongAsTheSequenceEqualsCausal) {
  const AttentionOperands o = operands_of(poisoned_context(), {16, 16, 1, 2, 2, 8}, DType::float32);
  const FlashAttentionOptions causal = options_of(8, true, false);
  const ops::FlashAttentionResult want = ops::flash_attention_forward(o.q, o.k, o.v, causal);
  for (const std::pair<std::int64_t, std::int64_t>& window :
       {std::pair<std::int64_t, std::int64_t>{15, 0}, {16, 0}, {-1, 0}, {INT64_MAX, 0}}) {
    FlashAttentionOptions options = options_of(8, false, false);
    options.window = window;
    const ops::FlashAttentionResult got = ops::flash_attention_forward(o.q, o.k, o.v, options);
    EXPECT_TRUE(close(want.o, got.o, 1e-6, 0.0));
  }
}

// labels: ops.flash_attention A15
TEST(FlashAttention, RowsWithAnEmptyWindowAreZero) {
  const AttentionOperands o = operands_of(poisoned_context(), {8, 4, 1, 1, 1, 4}, DType::float32);
  FlashAttentionOptions options = options_of(4, false, false);
  options.window = {1, 1};
  const ops::FlashAttentionResult r = ops::flash_attention_forward(o.q, o.k, o.v, options);
  const Values lse = values_of(r.lse);
  // The diagonal of row i is key i - 4: rows 0..2 see nothing, row 3 sees key 0.
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(lse[i] == -INFINITY, i < 3) << i;
  expect_all_as_oracle(o, options);
}

// labels: ops.flash_attention A13 A15
TEST(FlashAttention, WindowsOverSeveralBlocksEqualFp64) {
  for (const bool causal : {false, true}) {
    for (const std::pair<std::int64_t, std::int64_t>& window :
         {std::pair<std::int64_t, std::int64_t>{3, 0}, {0, 0}, {70, 5}, {-1, 40}, {10, -1}}) {
      for (const AttentionSizes& n :
           {AttentionSizes{150, 150, 1, 2, 1, 8}, AttentionSizes{97, 210, 1, 1, 1, 8},
            AttentionSizes{210, 97, 1, 1, 1, 8}}) {
        SCOPED_TRACE(to_string(Shape{n.sq, n.sk, window.first, window.second}));
        FlashAttentionOptions options = options_of(n.d, causal, false);
        options.window = window;
        expect_all_as_oracle(operands_of(poisoned_context(), n, DType::float32), options);
      }
    }
  }
}

// labels: ops.flash_attention A11
TEST(FlashAttention, CausalOutputsDoNotDependOnLaterTokens) {
  const ContextPtr context = poisoned_context();
  const AttentionOperands o = operands_of(context, {64, 64, 1, 1, 1, 16}, DType::bfloat16);
  Values v = values_of(o.v);
  for (std::size_t c = 0; c < 16; ++c) v[40 * 16 + c] = 1000.0;
  const Tensor changed = tensor_of(context, {64, 1, 1, 16}, v, DType::bfloat16);
  const FlashAttentionOptions options = options_of(16, true, false);
  const Tensor a = ops::flash_attention_forward(o.q, o.k, o.v, options).o;
  const Tensor b = ops::flash_attention_forward(o.q, o.k, changed, options).o;
  EXPECT_TRUE(same_bits(a.slice(0, 0, 40), b.slice(0, 0, 40)));
  EXPECT_FALSE(same_bits(a.slice(0, 40, 24), b.slice(0, 40, 24)));
}

// labels: ops.flash_attention A05
TEST(FlashAttention, NaNSpreadsToQueriesThatSeeItAndNotBeyondTheirBlocks) {
  for (const bool in_key : {false, true}) {
    const ContextPtr context = poisoned_context();
    const AttentionOperands o = operands_of(context, {300, 300, 1, 1, 1, 8}, DType::bfloat16);
    Values spoiled = values_of(in_key ? o.k : o.v);
    spoiled[150 * 8 + 3] = kNaN;
    const Tensor bad = tensor_of(context, {300, 1, 1, 8}, spoiled, DType::bfloat16);
    const FlashAttentionOptions options = options_of(8, true, false);
    const Values out = values_of(
        ops::flash_attention_forward(o.q, in_key ? bad : o.k, in_key ? o.v : bad, options).o);
    for (std::size_t i = 0; i < 300; ++i) {
      if (i >= 150) {
        EXPECT_TRUE(std::isnan(out[i * 8 + 3])) << i;
      } else if (i < 128 || in_key) {
        EXPECT_TRUE(std::isfinite(out[i * 8 + 3])) << i;
      }
    }
  }
}

}  // namespace
}  // namespace kitchen::testing
