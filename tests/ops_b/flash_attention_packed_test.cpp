#include "kitchen/base/error.h"
#include "kitchen/ops/flash_attention.h"
#include "ops_b/attention_checks.h"

#include <gtest/gtest.h>

namespace kitchen::testing {
namespace {

using Values = std::vector<double>;
using ops::FlashAttentionOptions;

FlashAttentionOptions packed_options(std::vector<std::int64_t> q, std::vector<std::int64_t> k,
                                     bool causal) {
  FlashAttentionOptions options;
  options.scale = 0.25f;
  options.causal = causal;
  options.cu_seqlens_q = std::move(q);
  options.cu_seqlens_k = std::move(k);
  return options;
}

struct BothPasses {
  ops::FlashAttentionResult forward;
  ops::FlashAttentionGradients backward;
};

BothPasses run(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& dout,
               const FlashAttentionOptions& options) {
  BothPasses result;
  result.forward = ops::flash_attention_forward(q, k, v, options);
  result.backward =
      ops::flash_attention_backward(dout, q, k, v, result.forward.o, result.forward.lse, options);
  return result;
}

// labels: ops.flash_attention A05
TEST(PackedAttention, TokensPastTheOffsetsAreNeverRead) {
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    const ContextPtr context = poisoned_context();
    Values clean = normals(2 * 4, 1);
    std::fill(clean.begin() + 4, clean.end(), 0.0);
    Values spoiled = clean;
    std::fill(spoiled.begin() + 4, spoiled.end(), kNaN);
    const FlashAttentionOptions options = packed_options({0, 1}, {0, 1}, true);
    const Tensor good = tensor_of(context, {2, 1, 1, 4}, clean, dtype);
    const Tensor bad = tensor_of(context, {2, 1, 1, 4}, spoiled, dtype);
    const BothPasses want = run(good, good, good, good, options);
    const BothPasses got = run(bad, bad, bad, bad, options);
    EXPECT_TRUE(same_bits(want.forward.o, got.forward.o));
    EXPECT_TRUE(same_bits(want.forward.lse, got.forward.lse));
    EXPECT_TRUE(same_bits(want.backward.dq, got.backward.dq));
    EXPECT_TRUE(same_bits(want.backward.dk, got.backward.dk));
    EXPECT_TRUE(same_bits(want.backward.dv, got.backward.dv));
    for (const Tensor& x : {got.forward.o, got.backward.dq, got.backward.dk, got.backward.dv}) {
      const Values values = values_of(x);
      for (std::size_t i = 4; i < 8; ++i) EXPECT_EQ(values[i], 0.0);
    }
    EXPECT_EQ(values_of(got.forward.lse)[1], -INFINITY);
  }
}

// labels: ops.flash_attention A17
TEST(PackedAttention, EmptySequencesAreSkipped) {
  const ContextPtr context = poisoned_context();
  const Tensor q = normal_tensor(context, {2, 1, 9, 64}, DType::float32, 1);
  const Tensor k = normal_tensor(context, {8, 1, 3, 64}, DType::float32, 2);
  const Tensor v = normal_tensor(context, {8, 1, 3, 64}, DType::float32, 3);
  const BothPasses got = run(q, k, v, q, packed_options({0, 0, 1, 1, 2}, {0, 0, 3, 3, 8}, false));
  const FlashAttentionOptions plain = packed_options({}, {}, false);
  const BothPasses first =
      run(q.slice(0, 0, 1), k.slice(0, 0, 3), v.slice(0, 0, 3), q.slice(0, 0, 1), plain);
  const BothPasses second =
      run(q.slice(0, 1, 1), k.slice(0, 3, 5), v.slice(0, 3, 5), q.slice(0, 1, 1), plain);
  EXPECT_EQ(got.forward.o.shape(), (Shape{2, 1, 9, 64}));
  EXPECT_TRUE(same_bits(first.forward.o, got.forward.o.slice(0, 0, 1)));
  EXPECT_TRUE(same_bits(second.forward.o, got.forward.o.slice(0, 1, 1)));
  EXPECT_TRUE(same_bits(first.backward.dk, got.backward.dk.slice(0, 0, 3)));
  EXPECT_TRUE(same_bits(second.backward.dk, got.backward.dk.slice(0, 3, 5)));
  EXPECT_TRUE(same_bits(second.backward.dq, got.backward.dq.slice(0, 1, 1)));
}

// labels: ops.flash_attention A19
TEST(PackedAttention, SequencesDoNotSeeEachOther) {
  const ContextPtr context = poisoned_context();
  const FlashAttentionOptions options = packed_options({0, 3, 8}, {0, 3, 8}, true);
  const Values values = normals(8 * 2 * 8, 1);
  const Tensor x = tensor_of(context, {8, 1, 2, 8}, values, DType::bfloat16);
  const BothPasses want = run(x, x, x, x, options);
  for (std::size_t token = 0; token < 3; ++token) {
    Values changed = values;
    for (std::size_t i = 0; i < 16; ++i) changed[token * 16 + i] += 7.0;
    const Tensor y = tensor_of(context, {8, 1, 2, 8}, changed, DType::bfloat16);
    const BothPasses got = run(y, y, y, y, options);
    EXPECT_TRUE(same_bits(want.forward.o.slice(0, 3, 5), got.forward.o.slice(0, 3, 5)));
    EXPECT_TRUE(same_bits(want.backward.dv.slice(0, 3, 5), got.backward.dv.slice(0, 3, 5)));
  }
  const FlashAttentionOptions plain = packed_options({}, {}, true);
  for (const auto& [first, length] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 3}, {3, 5}}) {
    const Tensor part = x.slice(0, first, length);
    const BothPasses alone = run(part, part, part, part, plain);
    EXPECT_TRUE(same_bits(alone.forward.o, want.forward.o.slice(0, first, length)));
    EXPECT_TRUE(same_bits(alone.backward.dq, want.backward.dq.slice(0, first, length)));
    EXPECT_TRUE(same_bits(alone.backward.dk, want.backward.dk.slice(0, first, length)));
  }
}

// labels: ops.flash_attention A17 A19
TEST(PackedAttention, LongRaggedSequencesEqualFp64) {
  const ContextPtr context = poisoned_context();
  const Tensor q = normal_tensor(context, {230, 1, 4, 16}, DType::float32, 1);
  const Tensor k = normal_tensor(context, {300, 1, 2, 16}, DType::float32, 2);
  const Tensor v = normal_tensor(context, {300, 1, 2, 16}, DType::float32, 3);
  const Tensor dout = normal_tensor(context, {230, 1, 4, 16}, DType::float32, 4);
  FlashAttentionOptions options =
      packed_options({0, 1, 100, 130, 220}, {0, 70, 169, 180, 280}, true);
  for (const std::int64_t left : {-1, 20}) {
    options.window.first = left;
    const OracleResult want =
        attention_oracle(heads_of(q), heads_of(k), heads_of(v), heads_of(dout), options);
    const BothPasses got = run(q, k, v, dout, options);
    // 16 · (4 d + 8) units, as for one sequence.
    const double bound = 16 * 72 * kUnit32;
    EXPECT_TRUE(close(want.o.values, values_of(got.forward.o), bound, bound));
    EXPECT_TRUE(close(want.dq.values, values_of(got.backward.dq), bound, bound));
    EXPECT_TRUE(close(want.dk.values, values_of(got.backward.dk), bound, bound));
    EXPECT_TRUE(close(want.dv.values, values_of(got.backward.dv), bound, bound));
  }
}

// labels: ops.flash_attention
TEST(PackedAttention, BadOffsetsAreRefused) {
  const ContextPtr context = poisoned_context();
  const Tensor x = normal_tensor(context, {4, 1, 1, 8}, DType::bfloat16, 1);
  const Tensor batch = normal_tensor(context, {4, 2, 1, 8}, DType::bfloat16, 1);
  const auto refused = [](const Tensor& t, std::vector<std::int64_t> q,
                          std::vector<std::int64_t> k) {
    EXPECT_THROW((void)ops::flash_attention_forward(
                     t, t, t, packed_options(std::move(q), std::move(k), true)),
                 ValueError);
  };
  refused(x, {0, 4}, {});
  refused(x, {0, 4}, {0, 2, 4});
  refused(x, {1, 4}, {0, 4});
  refused(x, {0, 3, 2}, {0, 2, 3});
  refused(x, {0, 5}, {0, 4});
  refused(batch, {0, 4}, {0, 4});
}

}  // namespace
}  // namespace kitchen::testing
