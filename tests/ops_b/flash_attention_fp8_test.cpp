#include "kitchen/ops/flash_attention_fp8.h"

#include "kitchen/base/error.h"
#include "kitchen/ops/quantize.h"
#include "ops_b/attention_checks.h"
#include "support/expect_error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

namespace kitchen::testing {
namespace {

using Values = std::vector<double>;
using ops::FlashAttentionOptions;

/// One scale a head: [s, b, heads, d] -> codes [b, heads, s, d].
QuantizedMatrix codes_of(const Tensor& x, const char* scheme) {
  return ops::quantize(x.permute({1, 2, 0, 3}), quantize_spec_from_scheme_name(scheme));
}

struct Fp8Operands {
  QuantizedMatrix q, k, v, dout;
};

Fp8Operands codes_of(const AttentionOperands& o) {
  return {codes_of(o.q, "tensor_e4m3"), codes_of(o.k, "tensor_e4m3"), codes_of(o.v, "tensor_e4m3"),
          codes_of(o.dout, "tensor_e5m2")};
}

struct Outputs {
  Tensor o, lse, dq, dk, dv;
};

Outputs run(const AttentionOperands& o, const Fp8Operands& codes,
            const FlashAttentionOptions& options) {
  const ops::FlashAttentionResult r =
      ops::flash_attention_fp8_forward(codes.q, codes.k, codes.v, o.q.dtype(), options);
  const ops::FlashAttentionGradients g = ops::flash_attention_fp8_backward(
      o.dout, codes.dout, codes.q, codes.k, codes.v, r.o, r.lse, options);
  return {r.o, r.lse, g.dq, g.dk, g.dv};
}

Outputs run(const AttentionOperands& o, const FlashAttentionOptions& options) {
  return run(o, codes_of(o), options);
}

/// The same context with the fp64 kernels chosen.
class ExactKernels {
 public:
  explicit ExactKernels(ContextPtr context) : context_(std::move(context)) { choose("exact"); }
  ~ExactKernels() { choose("blocked"); }

 private:
  void choose(const char* variant) {
    context_->set_variant<ops::FlashAttentionFp8ForwardKernel>(variant);
    context_->set_variant<ops::FlashAttentionFp8BackwardKernel>(variant);
  }
  ContextPtr context_;
};

void expect_same_bits(const Outputs& a, const Outputs& b) {
  EXPECT_TRUE(same_bits(a.o, b.o));
  EXPECT_TRUE(same_bits(a.lse, b.lse));
  EXPECT_TRUE(same_bits(a.dq, b.dq));
  EXPECT_TRUE(same_bits(a.dk, b.dk));
  EXPECT_TRUE(same_bits(a.dv, b.dv));
}

// labels: ops.flash_attention_fp8
TEST(Fp8FlashAttention, EqualsTheExactKernelUpToFlipsOfRoundings) {
  for (const AttentionSizes& n :
       {AttentionSizes{1, 1, 1, 1, 1, 1}, AttentionSizes{33, 65, 1, 3, 1, 31},
        AttentionSizes{64, 64, 2, 4, 2, 32}, AttentionSizes{129, 97, 1, 6, 2, 33},
        AttentionSizes{7, 200, 1, 2, 2, 64}}) {
    for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
      for (const bool natural_exp : {false, true}) {
        SCOPED_TRACE(to_string(Shape{n.sq, n.sk, n.b, n.np, n.ng, n.d}) + to_string(dtype));
        const ContextPtr context = poisoned_context();
        const AttentionOperands o = operands_of(context, n, dtype);
        FlashAttentionOptions options = options_of(n.d, true, natural_exp);
        options.window = {70, 0};
        const Fp8Operands codes = codes_of(o);
        const Outputs got = run(o, codes, options);
        const ExactKernels exact(context);
        const Outputs want = run(o, codes, options);
        // Beyond one block of keys p is cast relative to another maximum: two casts to E4M3 differ
        // by at most twice 3.5e-4 (S8.3); a flip of p or dS adds less. S8.5 allows 1e-3.
        EXPECT_TRUE(error_below(want.o, got.o, 1e-3));
        EXPECT_TRUE(error_below(want.dv, got.dv, 1e-3));
        if (n.sk > 1) {  // With one key dS is p·(dP - delta) = 0 up to rounding.
          EXPECT_TRUE(error_below(want.dq, got.dq, 1e-3));
          EXPECT_TRUE(error_below(want.dk, got.dk, 1e-3));
        }
        const double bound = (4 * static_cast<double>(n.d) + 8) * kUnit32;
        const Values lse = values_of(got.lse);
        const Values want_lse = values_of(want.lse);
        for (std::size_t i = 0; i < lse.size(); ++i) {
          EXPECT_TRUE(lse[i] == want_lse[i] || std::abs(lse[i] - want_lse[i]) <= bound) << i;
        }
      }
    }
  }
}

// labels: ops.flash_attention_fp8
TEST(Fp8FlashAttention, EachOutputIsWithinTheRoundingOfItsProbabilities) {
  const AttentionSizes n{70, 150, 1, 2, 1, 16};
  const AttentionOperands o = operands_of(poisoned_context(), n, DType::float32);
  const Fp8Operands codes = codes_of(o);
  const FlashAttentionOptions options = options_of(n.d, true, false);
  const auto heads = [](const QuantizedMatrix& x) {
    return heads_of(ops::dequantize(x, DType::float32).permute({2, 0, 1, 3}));
  };
  const Heads q = heads(codes.q);
  const Heads k = heads(codes.k);
  Heads v = heads(codes.v);
  const OracleResult exact = attention_oracle(q, k, v, heads(codes.dout), options);
  for (double& value : v.values) value = std::abs(value);
  const OracleResult sizes = attention_oracle(q, k, v, heads(codes.dout), options);
  Values want = exact.o.values;
  Values got = values_of(run(o, codes, options).o);
  const double largest = *std::max_element(v.values.begin(), v.values.end());
  // p changes by 2^-4 of itself in a cast to E4M3, or by half the least code, 2^-10 / 256 of the
  // largest p, for each of 150 keys; fp32 errors are far below the 1 % on top.
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double bound = 1.01 * (0x1p-4 * sizes.o.values[i] + 150 * 0x1p-18 * largest);
    want[i] /= bound;
    got[i] /= bound;
  }
  EXPECT_TRUE(close(want, got, 1.0, 0.0));
}

// labels: ops.flash_attention_fp8 A09
TEST(Fp8FlashAttention, ManySmallProbabilitiesAreNotLost) {
  const ContextPtr context = poisoned_context();
  for (const std::size_t peak : {std::size_t{0}, std::size_t{2000}, std::size_t{4095}}) {
    Values keys(4096, -7.0);
    keys[peak] = 0.0;
    const Tensor one = tensor_of(context, {1, 1, 1, 1}, {1.0}, DType::bfloat16);
    const QuantizedMatrix q = codes_of(one, "tensor_e4m3");
    const QuantizedMatrix k =
        codes_of(tensor_of(context, {4096, 1, 1, 1}, keys, DType::bfloat16), "tensor_e4m3");
    const QuantizedMatrix v = codes_of(
        tensor_of(context, {4096, 1, 1, 1}, Values(4096, 1.0), DType::bfloat16), "tensor_e4m3");
    FlashAttentionOptions options = options_of(1, false, false);
    const auto output = [&] {
      return values_of(ops::flash_attention_fp8_forward(q, k, v, DType::bfloat16, options).o)[0];
    };
    EXPECT_NEAR(output(), 1.0, 0.02) << peak;
    // Without the factor e^-7 is below half of E4M3's least code: only the peak is left, 1 / 4.73.
    options.p_scale = 1.0f;
    if (peak == 0) {
      EXPECT_NEAR(output(), 0.21, 0.01);
    }
  }
}

// labels: ops.flash_attention_fp8 A11
TEST(Fp8FlashAttention, OnlyTheScaleSeesTheFuture) {
  const ContextPtr context = poisoned_context();
  const AttentionOperands o = operands_of(context, {64, 64, 1, 1, 1, 16}, DType::bfloat16);
  AttentionOperands changed = o;
  Values v = values_of(o.v);
  for (std::size_t c = 0; c < 16; ++c) v[40 * 16 + c] = 1000.0;
  changed.v = tensor_of(context, {64, 1, 1, 16}, v, DType::bfloat16);
  const FlashAttentionOptions options = options_of(16, true, false);
  const Outputs before = run(o, options);
  EXPECT_FALSE(same_bits(before.o.slice(0, 0, 40), run(changed, options).o.slice(0, 0, 40)));
  // With the scale held the kernel itself is causal.
  Fp8Operands codes = codes_of(o);
  const Outputs a = run(o, codes, options);
  auto* bytes = static_cast<std::uint8_t*>(codes.v.codes.raw_data());
  std::fill(bytes + 40 * 16, bytes + 41 * 16, std::uint8_t{0x7E});
  const Outputs b = run(o, codes, options);
  EXPECT_TRUE(same_bits(a.o.slice(0, 0, 40), b.o.slice(0, 0, 40)));
  EXPECT_FALSE(same_bits(a.o.slice(0, 40, 24), b.o.slice(0, 40, 24)));
}

// labels: ops.flash_attention_fp8 A13
TEST(Fp8FlashAttention, WindowAsLongAsTheSequenceEqualsCausal) {
  const AttentionOperands o =
      operands_of(poisoned_context(), {16, 16, 1, 2, 2, 8}, DType::bfloat16);
  const Outputs want = run(o, options_of(8, true, false));
  for (const std::int64_t left : {15, 16, -1}) {
    FlashAttentionOptions options = options_of(8, false, false);
    options.window = {left, 0};
    expect_same_bits(want, run(o, options));
  }
}

// labels: ops.flash_attention_fp8 A01 A15
TEST(Fp8FlashAttention, RowsThatSeeNoKeyAreZero) {
  for (const bool causal : {false, true}) {
    const AttentionOperands o =
        operands_of(poisoned_context(), {8, 4, 1, 1, 1, 4}, DType::bfloat16);
    FlashAttentionOptions options = options_of(4, causal, false);
    if (!causal) options.window = {1, 1};
    const std::int64_t empty = causal ? 4 : 3;
    const Outputs got = run(o, options);
    for (const Tensor& x : {got.o, got.dq}) {
      for (const double value : values_of(x.slice(0, 0, empty))) EXPECT_EQ(value, 0.0);
    }
    const Values lse = values_of(got.lse);
    for (std::int64_t i = 0; i < 8; ++i) {
      EXPECT_EQ(lse[static_cast<std::size_t>(i)] == -INFINITY, i < empty) << i;
    }
    for (const Tensor& x : {got.dk, got.dv}) {
      for (const double value : values_of(x)) EXPECT_TRUE(std::isfinite(value));
    }
  }
}

// labels: ops.flash_attention_fp8 A17 A19
TEST(Fp8FlashAttention, PackedSequencesEqualSeparateRunsOfTheSameCodes) {
  const ContextPtr context = poisoned_context();
  const AttentionOperands o = operands_of(context, {3, 9, 1, 9, 3, 64}, DType::bfloat16);
  FlashAttentionOptions options = options_of(64, false, false);
  options.cu_seqlens_q = {0, 0, 1, 1, 2};
  options.cu_seqlens_k = {0, 0, 3, 3, 8};
  const Fp8Operands codes = codes_of(o);
  const Outputs got = run(o, codes, options);
  const auto part = [](const QuantizedMatrix& x, std::int64_t first, std::int64_t length) {
    QuantizedMatrix slice = x;
    slice.codes = x.codes.slice(2, first, length);
    return slice;
  };
  const FlashAttentionOptions plain = options_of(64, false, false);
  for (const auto& [query, key, length] :
       std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>>{{0, 0, 3}, {1, 3, 5}}) {
    AttentionOperands alone = o;
    alone.dout = o.dout.slice(0, query, 1);
    const Outputs want = run(alone,
                             {part(codes.q, query, 1), part(codes.k, key, length),
                              part(codes.v, key, length), part(codes.dout, query, 1)},
                             plain);
    EXPECT_TRUE(same_bits(want.o, got.o.slice(0, query, 1)));
    EXPECT_TRUE(same_bits(want.dq, got.dq.slice(0, query, 1)));
    EXPECT_TRUE(same_bits(want.dk, got.dk.slice(0, key, length)));
    EXPECT_TRUE(same_bits(want.dv, got.dv.slice(0, key, length)));
  }
  for (const Tensor& x : {got.o.slice(0, 2, 1), got.dk.slice(0, 8, 1)}) {
    for (const double value : values_of(x)) EXPECT_EQ(value, 0.0);
  }
}

// labels: ops.flash_attention_fp8 A22
TEST(Fp8FlashAttention, CodesBeyondTwoToThe31BytesAreRead) {
  const ContextPtr context = reference::make_cpu_context();
  const std::int64_t stride = std::int64_t{1} << 31;
  const AttentionOperands o = operands_of(context, {2, 2, 1, 1, 1, 64}, DType::bfloat16);
  const Fp8Operands codes = codes_of(o);
  const Tensor buffer = Tensor::empty(context, {stride + 64}, DType::float8_e4m3);
  QuantizedMatrix far = codes.q;
  far.codes = buffer.as_strided({1, 1, 2, 64}, {64, 64, stride, 1}, 0);
  const auto* from = static_cast<const std::uint8_t*>(codes.q.codes.raw_data());
  auto* to = static_cast<std::uint8_t*>(buffer.raw_data());
  std::copy(from, from + 64, to);
  std::copy(from + 64, from + 128, to + stride);
  const FlashAttentionOptions options = options_of(64, true, false);
  expect_same_bits(run(o, codes, options), run(o, {far, codes.k, codes.v, codes.dout}, options));
}

// labels: ops.flash_attention A21
TEST(FlashAttention, OutputsBeyondTwoToThe31ElementsAreWritten) {
  const ContextPtr context = reference::make_cpu_context();
  const std::int64_t stride = std::int64_t{1} << 31;
  const Tensor buffer = Tensor::empty(context, {stride + 64}, DType::bfloat16);
  const Tensor far = buffer.as_strided({2, 1, 1, 64}, {stride, 64, 64, 1}, 0);
  const Tensor x = normal_tensor(context, {2, 1, 1, 64}, DType::bfloat16, 5);
  const FlashAttentionOptions options = options_of(64, true, false);
  const ops::FlashAttentionResult want = ops::flash_attention_forward(x, x, x, options);
  context->launch<ops::FlashAttentionForwardKernel>("", x.const_view(), x.const_view(),
                                                    x.const_view(), far.kernel_view(),
                                                    want.lse.kernel_view(), options);
  EXPECT_TRUE(same_bits(want.o, far));
  // The whole of 131073 x 128 heads x 128 as the planner sees it: sizes do not wrap.
  const ContextPtr meta = make_meta_context(*context);
  const Tensor big = Tensor::empty(meta, {131073, 1, 128, 128}, DType::bfloat16);
  (void)ops::flash_attention_forward(big, big, big, options);
  EXPECT_EQ(meta->allocator()->stats().peak_bytes, std::int64_t{131073} * 128 * (2 * 128 * 2 + 4));
}

// labels: ops.flash_attention_fp8 A29
TEST(Fp8FlashAttention, PeakMemoryGrowsLinearlyWithTheSequence) {
  const auto peak = [](std::int64_t s) {
    const ContextPtr meta = make_meta_context(*reference::make_cpu_context());
    const Tensor x = Tensor::empty(meta, {s, 1, 4, 64}, DType::bfloat16);
    (void)run({x, x, x, x}, options_of(64, true, false));
    return meta->allocator()->stats().peak_bytes;
  };
  const auto per_token = static_cast<double>(peak(65536) - peak(32768)) / 32768;
  // x, o and three gradients of 2 bytes, four codes of 1 byte, lse and delta of 4 bytes a head.
  EXPECT_EQ(per_token, 4 * (64 * (5 * 2 + 4) + 2 * 4));
}

// labels: ops.flash_attention_fp8 A23
TEST(Fp8FlashAttention, ResultsAreTheSameBitsForAnyNumberOfThreads) {
  const AttentionOperands o =
      operands_of(poisoned_context(), {192, 192, 1, 4, 2, 32}, DType::bfloat16);
  Outputs first;
  with_one_and_two_threads([&](int threads) {
    const Outputs got = run(o, options_of(32, true, false));
    if (threads == 1) first = got;
    expect_same_bits(first, got);
  });
}

// labels: ops.flash_attention_fp8
TEST(Fp8FlashAttention, BadOperandsAreRefusedByName) {
  const AttentionOperands o = operands_of(poisoned_context(), {4, 4, 1, 2, 2, 8}, DType::bfloat16);
  const Fp8Operands codes = codes_of(o);
  FlashAttentionOptions options = options_of(8, true, false);
  const auto forward = [&](const QuantizedMatrix& k) {
    return [&, k] {
      (void)ops::flash_attention_fp8_forward(codes.q, k, codes.v, DType::bfloat16, options);
    };
  };
  EXPECT_TRUE(throws<TypeError>(forward(codes.dout), {"k", "float8_e5m2", "float8_e4m3"}));
  EXPECT_TRUE(throws<ValueError>(forward(codes_of(o.k, "b1x128_e4m3_fp32")),
                                 {"k", "one float32 scale a head"}));
  options.p_scale = 512.0f;
  EXPECT_TRUE(throws<ValueError>(forward(codes.k), {"p_scale", "512", "256"}));
  options.p_scale = 3.0f;
  EXPECT_TRUE(throws<ValueError>(forward(codes.k), {"p_scale", "power of two"}));
  options.p_scale = 256.0f;
  EXPECT_TRUE(throws<TypeError>(
      [&] {
        (void)ops::flash_attention_fp8_backward(o.dout, codes.q, codes.q, codes.k, codes.v, o.q,
                                                Tensor(), options);
      },
      {"dout_codes", "float8_e4m3"}));
}

}  // namespace
}  // namespace kitchen::testing
