#include "contract/contract.h"

#include "kitchen/ops/flash_attention.h"
#include "kitchen/ops/rotary.h"
#include "ops_b/attention_checks.h"

namespace kitchen::testing {
namespace {

using AttentionContract = BackendContract;
INSTANTIATE_TEST_SUITE_P(Backends, AttentionContract, ::testing::ValuesIn(backend_names()),
                         &name_of_backend);

/// The five results of both passes, computed on copies off their alignment, in host memory.
struct BothPasses {
  Tensor o, lse, dq, dk, dv;
};

BothPasses run_on(const ContextPtr& context, const ContextPtr& cpu,
                  const AttentionOperands& host, const ops::FlashAttentionOptions& options) {
  const Guarded q = placed(context, host.q, 1);
  const Guarded k = placed(context, host.k, 3);
  const Guarded v = placed(context, host.v, 0);
  const Guarded dout = placed(context, host.dout, 1);
  const ops::FlashAttentionResult forward =
      ops::flash_attention_forward(q.tensor(), k.tensor(), v.tensor(), options);
  const ops::FlashAttentionGradients back = ops::flash_attention_backward(
      dout.tensor(), q.tensor(), k.tensor(), v.tensor(), forward.o, forward.lse, options);
  return {forward.o.to(cpu), forward.lse.to(cpu), back.dq.to(cpu), back.dk.to(cpu),
          back.dv.to(cpu)};
}

void expect_as_oracle(const BothPasses& found, const AttentionOperands& host,
                      const ops::FlashAttentionOptions& options) {
  const OracleResult want = oracle_of(host, options);
  const std::int64_t d = host.q.dim(3);
  EXPECT_TRUE(matches(want.o, found.o, d));
  expect_lse(want.lse, found.lse, d);
  EXPECT_TRUE(matches(want.dq, found.dq, d));
  EXPECT_TRUE(matches(want.dk, found.dk, d));
  EXPECT_TRUE(matches(want.dv, found.dv, d));
}

std::string text_of(const AttentionSizes& n) {
  return to_string(Shape{n.sq, n.sk, n.b, n.np, n.ng, n.d});
}

// labels: ops.flash_attention_forward ops.flash_attention_backward
TEST_P(AttentionContract, BothPassesMatchTheDefinitionForEveryMask) {
  // One token, a tile of 32 ± 1, more queries than keys, grouped heads, head sizes around 64 and 128.
  const std::vector<AttentionSizes> sizes = {{1, 2, 1, 1, 1, 8},     {33, 33, 2, 4, 2, 7},
                                             {31, 95, 1, 2, 1, 64},  {65, 33, 1, 3, 3, 65},
                                             {64, 64, 1, 1, 1, 128}, {40, 40, 1, 1, 1, 192}};
  // No window of one key: there dS is 0, and a relative error of rounding noise says nothing.
  for (const AttentionSizes& n : sizes) {
    for (const DType dtype : kHighPrecision) {
      for (const auto& window :
           {std::pair<std::int64_t, std::int64_t>{-1, -1}, {7, 3}, {1, 0}, {-1, 2}}) {
        for (const bool causal : {false, true}) {
          SCOPED_TRACE(text_of(n) + " " + to_string(dtype) + " window " +
                       std::to_string(window.first) + " " + std::to_string(window.second) +
                       (causal ? " causal" : ""));
          const AttentionOperands host = operands_of(cpu(), n, dtype);
          ops::FlashAttentionOptions options = options_of(n.d, causal, causal);
          options.window = window;
          BothPasses found;
          on_fresh_stream([&] { found = run_on(context(), cpu(), host, options); });
          expect_as_oracle(found, host, options);
        }
      }
    }
  }
}

// labels: ops.flash_attention_forward ops.flash_attention_backward A05
TEST_P(AttentionContract, PackedSequencesSeeThemselvesOnlyAndTheTailIsZero) {
  for (const DType dtype : kHighPrecision) {
    SCOPED_TRACE(to_string(dtype));
    AttentionOperands host = operands_of(cpu(), {80, 90, 1, 4, 2, 16}, dtype);
    ops::FlashAttentionOptions options = options_of(16, true, true);
    options.cu_seqlens_q = {0, 5, 5, 42, 75};
    options.cu_seqlens_k = {0, 40, 41, 41, 88};
    for (const std::int64_t token : {76, 79}) put_nan(host.q, token * 4 * 16 + 3);
    put_nan(host.v, 89 * 2 * 16 + 1);
    BothPasses found;
    on_fresh_stream([&] { found = run_on(context(), cpu(), host, options); });
    const AttentionOperands clean = operands_of(cpu(), {80, 90, 1, 4, 2, 16}, dtype);
    expect_as_oracle(found, clean, options);
  }
}

// labels: ops.rotary
TEST_P(AttentionContract, RotationsMatchTheReferenceToTheLastBitButOne) {
  for (const Shape& shape : {Shape{1, 1, 1, 2}, Shape{67, 2, 3, 12}, Shape{300, 1, 2, 64}}) {
    for (const DType dtype : kHighPrecision) {
      for (const bool inverse : {false, true}) {
        SCOPED_TRACE(to_string(shape) + " " + to_string(dtype) + (inverse ? " inverse" : ""));
        const std::int64_t rotated = shape[3] / 4 * 2;
        const Tensor host = normal_tensor(cpu(), shape, dtype, 5);
        const Guarded x = placed(context(), host, 1);
        Tensor found;
        on_fresh_stream([&] {
          found = ops::rotary(x.tensor(), rotated, 10000.0, inverse).to(cpu());
        });
        // Sine and cosine may differ by a unit, |x| is below 8; one more rounding to the dtype.
        EXPECT_TRUE(close(ops::rotary(host, rotated, 10000.0, inverse), found, 16 * kUnit32,
                          2 * unit_of(dtype)));
      }
    }
  }
}

}  // namespace
}  // namespace kitchen::testing
