#include "kitchen/ops/flash_attention.h"

#include "kitchen/base/error.h"
#include "ops_b/attention_checks.h"
#include "support/gradcheck.h"

#include <gtest/gtest.h>

namespace kitchen::testing {
namespace {

using Values = std::vector<double>;
using ops::FlashAttentionOptions;

// labels: ops.flash_attention A25
TEST(FlashAttention, EqualsFp64OverShapesTypesAndBases) {
  for (const AttentionSizes& n :
       {AttentionSizes{1, 1, 1, 1, 1, 1}, AttentionSizes{1, 130, 2, 4, 2, 8},
        AttentionSizes{31, 31, 1, 1, 1, 16}, AttentionSizes{32, 64, 2, 2, 2, 17},
        AttentionSizes{33, 65, 1, 3, 1, 31}, AttentionSizes{65, 63, 1, 2, 1, 5},
        AttentionSizes{64, 64, 2, 4, 4, 32}, AttentionSizes{129, 97, 1, 6, 2, 33},
        AttentionSizes{7, 200, 1, 2, 2, 64}}) {
    for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
      for (const bool causal : {false, true}) {
        SCOPED_TRACE(to_string(Shape{n.sq, n.sk, n.b, n.np, n.ng, n.d}) + to_string(dtype) +
                     (causal ? " causal" : ""));
        const AttentionOperands o = operands_of(poisoned_context(), n, dtype);
        const OracleResult want = oracle_of(o, options_of(n.d, causal, false));
        expect_all(want, o, options_of(n.d, causal, false));
        expect_all(want, o, options_of(n.d, causal, true));
      }
    }
  }
}

// labels: ops.flash_attention
TEST(FlashAttention, GradientsEqualDifferencesOfTheOracle) {
  const AttentionSizes n{5, 7, 1, 4, 2, 3};
  const AttentionOperands o = operands_of(poisoned_context(), n, DType::float32);
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

// labels: ops.flash_attention A23
TEST(FlashAttention, GradientsAreTheSameBitsInEveryRunAndForAnyNumberOfThreads) {
  const AttentionOperands o =
      operands_of(poisoned_context(), {512, 512, 1, 4, 2, 64}, DType::bfloat16);
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
  AttentionOperands strided{seq_first.slice(3, 0, 9), seq_first.slice(3, 9, 9),
                            seq_first.slice(3, 18, 9), fused.slice(3, 5, 9).transpose(0, 1)};
  const auto copy = [&](const Tensor& x) {
    return tensor_of(context, x.shape(), values_of(x), x.dtype());
  };
  const AttentionOperands dense{copy(strided.q), copy(strided.k), copy(strided.v),
                                copy(strided.dout)};
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
  const AttentionOperands no_queries =
      operands_of(poisoned_context(), {0, 4, 1, 2, 1, 8}, DType::bfloat16);
  const AttentionOperands no_keys =
      operands_of(poisoned_context(), {4, 0, 1, 2, 1, 8}, DType::bfloat16);
  const FlashAttentionOptions options = options_of(8, false, false);
  for (const AttentionOperands& o : {no_queries, no_keys}) {
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
