#include "kitchen/ops/flash_attention.h"

#include "kitchen/base/error.h"
#include "ops_b/attention_oracle.h"
#include "ops_b/test_tensors.h"
#include "support/gradcheck.h"

#include <gtest/gtest.h>

namespace kitchen::testing {
namespace {

using Values = std::vector<double>;
using ops::FlashAttentionOptions;

struct Operands {
  Tensor q, k, v, dout;
};

struct Sizes {
  std::int64_t sq, sk, b, np, ng, d;
};

Operands operands_of(const ContextPtr& context, const Sizes& n, DType dtype) {
  return {normal_tensor(context, {n.sq, n.b, n.np, n.d}, dtype, 1),
          normal_tensor(context, {n.sk, n.b, n.ng, n.d}, dtype, 2),
          normal_tensor(context, {n.sk, n.b, n.ng, n.d}, dtype, 3),
          normal_tensor(context, {n.sq, n.b, n.np, n.d}, dtype, 4)};
}

Heads heads_of(const Tensor& x) {
  return {x.dim(0), x.dim(1), x.dim(2), x.dim(3), values_of(x)};
}

OracleResult oracle_of(const Operands& o, const FlashAttentionOptions& options) {
  return attention_oracle(heads_of(o.q), heads_of(o.k), heads_of(o.v), heads_of(o.dout), options);
}

FlashAttentionOptions options_of(std::int64_t d, bool causal, bool natural_exp) {
  FlashAttentionOptions options;
  options.scale = 1.0f / std::sqrt(static_cast<float>(d));
  options.causal = causal;
  options.natural_exp = natural_exp;
  return options;
}

/// fp32: scores of at most 8 in size carry d / 2 units of relative error at most (random signs), so
/// p carries 8·d/2 + 8 units, and o, dv sums of p·4 as much; dq and dk multiply it by |k| and the
/// number of keys that matter, 16 at most in these cases. 16-bit dtypes: the bounds of numerics.md
/// S8.5 with 16-bit outputs.
::testing::AssertionResult matches(const Heads& expected, const Tensor& actual, std::int64_t d) {
  if (actual.dtype() == DType::float32) {
    const double units = 4 * static_cast<double>(d) + 8;
    return close(expected.values, values_of(actual), 16 * units * kUnit32, 16 * units * kUnit32);
  }
  return error_below(expected.values, values_of(actual), 2e-5);
}

/// lse to the error of the scores; -inf where no key is seen.
void expect_lse(const Values& expected, const Tensor& lse, std::int64_t d) {
  const Values actual = values_of(lse);
  ASSERT_EQ(expected.size(), actual.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::isinf(expected[i])) {
      EXPECT_EQ(actual[i], -INFINITY) << i;
    } else {
      EXPECT_NEAR(actual[i], expected[i], (4 * static_cast<double>(d) + 8) * kUnit32) << i;
    }
  }
}

void expect_all(const OracleResult& want, const Operands& o, const FlashAttentionOptions& options) {
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

void expect_all_as_oracle(const Operands& o, const FlashAttentionOptions& options) {
  expect_all(oracle_of(o, options), o, options);
}

// labels: ops.flash_attention A25
TEST(FlashAttention, EqualsFp64OverShapesTypesAndBases) {
  for (const Sizes& n :
       {Sizes{1, 1, 1, 1, 1, 1}, Sizes{1, 130, 2, 4, 2, 8}, Sizes{31, 31, 1, 1, 1, 16},
        Sizes{32, 64, 2, 2, 2, 17}, Sizes{33, 65, 1, 3, 1, 31}, Sizes{65, 63, 1, 2, 1, 5},
        Sizes{64, 64, 2, 4, 4, 32}, Sizes{129, 97, 1, 6, 2, 33}, Sizes{7, 200, 1, 2, 2, 64}}) {
    for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
      for (const bool causal : {false, true}) {
        SCOPED_TRACE(to_string(Shape{n.sq, n.sk, n.b, n.np, n.ng, n.d}) + to_string(dtype) +
                     (causal ? " causal" : ""));
        const Operands o = operands_of(poisoned_context(), n, dtype);
        const OracleResult want = oracle_of(o, options_of(n.d, causal, false));
        expect_all(want, o, options_of(n.d, causal, false));
        expect_all(want, o, options_of(n.d, causal, true));
      }
    }
  }
}

// labels: ops.flash_attention
TEST(FlashAttention, GradientsEqualDifferencesOfTheOracle) {
  const Sizes n{5, 7, 1, 4, 2, 3};
  const Operands o = operands_of(poisoned_context(), n, DType::float32);
  FlashAttentionOptions options = options_of(n.d, true, true);
  options.window = {4, -1};
  const auto loss = [&](const std::vector<Values>& in) {
    Heads q = heads_of(o.q);
    Heads k = heads_of(o.k);
    Heads v = heads_of(o.v);
    q.values = in[0];
    k.values = in[1];
    v.values = in[2];
    const Heads dout = heads_of(o.dout);
    const OracleResult r = attention_oracle(q, k, v, dout, options);
    double sum = 0.0;
    for (std::size_t i = 0; i < dout.values.size(); ++i) sum += r.o.values[i] * dout.values[i];
    return sum;
  };
  const ops::FlashAttentionResult r = ops::flash_attention_forward(o.q, o.k, o.v, options);
  const ops::FlashAttentionGradients g =
      ops::flash_attention_backward(o.dout, o.q, o.k, o.v, r.o, r.lse, options);
  // As in `matches` for d = 3.
  EXPECT_TRUE(gradients_match(loss, {values_of(o.q), values_of(o.k), values_of(o.v)},
                              {values_of(g.dq), values_of(g.dk), values_of(g.dv)},
                              16 * 20 * kUnit32, 16 * 20 * kUnit32));
}

// labels: ops.flash_attention A01
TEST(FlashAttention, CausalIsAlignedBottomRightAndEmptyRowsAreZero) {
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    const Operands o = operands_of(poisoned_context(), {5, 2, 1, 1, 1, 8}, dtype);
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
  const Operands o = operands_of(poisoned_context(), {16, 16, 1, 2, 2, 8}, DType::float32);
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
  const Operands o = operands_of(poisoned_context(), {8, 4, 1, 1, 1, 4}, DType::float32);
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
      for (const Sizes& n :
           {Sizes{150, 150, 1, 2, 1, 8}, Sizes{97, 210, 1, 1, 1, 8}, Sizes{210, 97, 1, 1, 1, 8}}) {
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
  const Operands o = operands_of(context, {64, 64, 1, 1, 1, 16}, DType::bfloat16);
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
    const Operands o = operands_of(context, {300, 300, 1, 1, 1, 8}, DType::bfloat16);
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

// labels: ops.flash_attention A23
TEST(FlashAttention, GradientsAreTheSameBitsInEveryRunAndForAnyNumberOfThreads) {
  const Operands o = operands_of(poisoned_context(), {512, 512, 1, 4, 2, 64}, DType::bfloat16);
  const FlashAttentionOptions options = options_of(64, true, false);
  ops::FlashAttentionResult first;
  ops::FlashAttentionGradients first_gradients;
  with_one_and_two_threads([&](int threads) {
    for (int run = 0; run < 5; ++run) {
      const ops::FlashAttentionResult r = ops::flash_attention_forward(o.q, o.k, o.v, options);
      const ops::FlashAttentionGradients g =
          ops::flash_attention_backward(o.dout, o.q, o.k, o.v, r.o, r.lse, options);
      if (threads == 1 && run == 0) {
        first = r;
        first_gradients = g;
      }
      EXPECT_TRUE(same_bits(first.o, r.o));
      EXPECT_TRUE(same_bits(first.lse, r.lse));
      EXPECT_TRUE(same_bits(first_gradients.dq, g.dq));
      EXPECT_TRUE(same_bits(first_gradients.dk, g.dk));
      EXPECT_TRUE(same_bits(first_gradients.dv, g.dv));
    }
  });
}

// labels: ops.flash_attention G13
TEST(FlashAttention, StridedOperandsGiveTheBitsOfContiguousOnes) {
  const ContextPtr context = poisoned_context();
  // q, k and v as slices of one fused [s, b, heads, 3 d] tensor, and [b, s, ...] seen as [s, b,
  // ...].
  const Tensor fused = normal_tensor(context, {2, 40, 3, 3 * 9}, DType::bfloat16, 1);
  const Tensor seq_first = fused.transpose(0, 1);
  Operands strided{seq_first.slice(3, 0, 9), seq_first.slice(3, 9, 9), seq_first.slice(3, 18, 9),
                   fused.slice(3, 5, 9).transpose(0, 1)};
  const auto copy = [&](const Tensor& x) {
    return tensor_of(context, x.shape(), values_of(x), x.dtype());
  };
  const Operands dense{copy(strided.q), copy(strided.k), copy(strided.v), copy(strided.dout)};
  // One operand whose head elements are not neighbours, so that it is copied.
  strided.k = copy(strided.k.permute({3, 0, 1, 2})).permute({1, 2, 3, 0});
  const FlashAttentionOptions options = options_of(9, true, true);
  const ops::FlashAttentionResult a =
      ops::flash_attention_forward(dense.q, dense.k, dense.v, options);
  const ops::FlashAttentionResult b =
      ops::flash_attention_forward(strided.q, strided.k, strided.v, options);
  EXPECT_TRUE(same_bits(a.o, b.o));
  EXPECT_TRUE(same_bits(a.lse, b.lse));
  const ops::FlashAttentionGradients ga =
      ops::flash_attention_backward(dense.dout, dense.q, dense.k, dense.v, a.o, a.lse, options);
  const ops::FlashAttentionGradients gb = ops::flash_attention_backward(
      strided.dout, strided.q, strided.k, strided.v, b.o, b.lse, options);
  EXPECT_TRUE(same_bits(ga.dq, gb.dq));
  EXPECT_TRUE(same_bits(ga.dk, gb.dk));
  EXPECT_TRUE(same_bits(ga.dv, gb.dv));
}

// labels: ops.flash_attention A22 R06
TEST(FlashAttention, RowOffsetsBeyondTwoToThe31AreRead) {
  const ContextPtr context = reference::make_cpu_context();
  const std::int64_t stride = std::int64_t{1} << 31;
  const Tensor buffer = Tensor::empty(context, {stride + 64}, DType::bfloat16);
  const Tensor far = buffer.as_strided({2, 1, 1, 64}, {stride, 64, 64, 1}, 0);
  const Tensor near = normal_tensor(context, {2, 1, 1, 64}, DType::bfloat16, 5);
  for (std::int64_t i = 0; i < 128; ++i) {
    buffer.data<std::uint16_t>()[i / 64 * stride + i % 64] = near.data<std::uint16_t>()[i];
  }
  const FlashAttentionOptions options = options_of(64, true, false);
  const ops::FlashAttentionResult a = ops::flash_attention_forward(near, near, near, options);
  const ops::FlashAttentionResult b = ops::flash_attention_forward(far, far, far, options);
  EXPECT_TRUE(same_bits(a.o, b.o));
  EXPECT_TRUE(
      same_bits(ops::flash_attention_backward(near, near, near, near, a.o, a.lse, options).dk,
                ops::flash_attention_backward(far, far, far, far, b.o, b.lse, options).dk));
}

// labels: ops.flash_attention A29
TEST(FlashAttention, PeakMemoryGrowsLinearlyWithTheSequence) {
  const auto peak = [](std::int64_t s) {
    const ContextPtr meta = make_meta_context(*reference::make_cpu_context());
    const Tensor x = Tensor::empty(meta, {s, 1, 4, 64}, DType::bfloat16);
    FlashAttentionOptions options = options_of(64, true, false);
    for (std::int64_t i = 0; i <= 100; ++i) options.cu_seqlens_q.push_back(s * i / 100);
    options.cu_seqlens_k = options.cu_seqlens_q;
    const ops::FlashAttentionResult r = ops::flash_attention_forward(x, x, x, options);
    const ops::FlashAttentionGradients g =
        ops::flash_attention_backward(x, x, x, x, r.o, r.lse, options);
    return meta->allocator()->stats().peak_bytes;
  };
  // x, o, dq, dk, dv of 2 bytes and lse, delta of 4 bytes a row and head: no s x s anywhere.
  EXPECT_EQ(peak(32768), std::int64_t{32768} * 4 * (5 * 64 * 2 + 2 * 4));
  EXPECT_EQ(peak(65536), 2 * peak(32768));
  const ContextPtr context = reference::make_cpu_context();
  const Tensor x = normal_tensor(context, {512, 1, 4, 64}, DType::bfloat16, 1);
  const ops::FlashAttentionResult r =
      ops::flash_attention_forward(x, x, x, options_of(64, true, false));
  EXPECT_EQ(context->allocator()->stats().peak_bytes, 512 * 4 * (2 * 64 * 2 + 4));
}

// labels: ops.flash_attention A25
TEST(FlashAttention, BadOperandsAreRefusedByName) {
  const ContextPtr context = poisoned_context();
  const Tensor x = normal_tensor(context, {4, 2, 4, 8}, DType::bfloat16, 1);
  const Tensor f = normal_tensor(context, {4, 2, 4, 8}, DType::float32, 1);
  const FlashAttentionOptions options = options_of(8, true, false);
  const auto run = [&](const Tensor& q, const Tensor& k, const Tensor& v,
                       const FlashAttentionOptions& with) {
    return ops::flash_attention_forward(q, k, v, with);
  };
  try {
    (void)run(x, x, f, options);
    ADD_FAILURE() << "mixed dtypes were taken";
  } catch (const TypeError& error) {
    EXPECT_STREQ(error.what(),
                 "flash_attention_forward: v has dtype float32, but q has bfloat16; expected "
                 "float32, float16 or bfloat16, the same for all operands");
  }
  EXPECT_THROW((void)run(x, Tensor::zeros(context, {4, 2, 4, 8}, DType::float8_e4m3), x, options),
               TypeError);
  EXPECT_THROW((void)run(x, x.slice(3, 0, 4), x.slice(3, 0, 4), options), ValueError);
  EXPECT_THROW((void)run(x, x.slice(2, 0, 3), x.slice(2, 0, 3), options), ValueError);
  EXPECT_THROW((void)run(x, x.slice(1, 0, 1), x.slice(1, 0, 1), options), ValueError);
  EXPECT_THROW((void)run(x, x, x.slice(0, 0, 3), options), ValueError);
  EXPECT_THROW((void)run(x.view({8, 4, 8}), x, x, options), ValueError);
  FlashAttentionOptions bad = options;
  bad.window = {-2, 0};
  EXPECT_THROW((void)run(x, x, x, bad), ValueError);
  const ops::FlashAttentionResult r = run(x, x, x, options);
  EXPECT_THROW((void)ops::flash_attention_backward(f, x, x, x, r.o, r.lse, options), TypeError);
  EXPECT_THROW((void)ops::flash_attention_backward(x, x, x, x, r.o, r.o, options), TypeError);
  EXPECT_THROW((void)ops::flash_attention_backward(x.slice(0, 0, 3), x, x, x, r.o, r.lse, options),
               ValueError);
}

// labels: ops.flash_attention
TEST(FlashAttention, NoQueriesOrNoKeysAreLegal) {
  const Operands no_queries = operands_of(poisoned_context(), {0, 4, 1, 2, 1, 8}, DType::bfloat16);
  const Operands no_keys = operands_of(poisoned_context(), {4, 0, 1, 2, 1, 8}, DType::bfloat16);
  const FlashAttentionOptions options = options_of(8, false, false);
  for (const Operands& o : {no_queries, no_keys}) {
    const ops::FlashAttentionResult r = ops::flash_attention_forward(o.q, o.k, o.v, options);
    const ops::FlashAttentionGradients g =
        ops::flash_attention_backward(o.dout, o.q, o.k, o.v, r.o, r.lse, options);
    for (const Tensor& zero : {r.o, g.dq, g.dk, g.dv}) {
      for (const double value : values_of(zero)) EXPECT_EQ(value, 0.0);
    }
  }
}

}  // namespace
}  // namespace kitchen::testing
