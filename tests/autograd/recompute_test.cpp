#include "kitchen/autograd/recompute.h"

#include "kitchen/autograd/backward.h"
#include "kitchen/autograd/math_functions.h"
#include "kitchen/autograd/nn_functions.h"
#include "kitchen/base/error.h"
#include "support/compare.h"
#include "support/expect_error.h"
#include "support/rank_test.h"

#include <gtest/gtest.h>

namespace kitchen {
namespace {

using autograd::backward;
using autograd::grad_of;
using testing::RankTest;
using testing::same_bits;
using testing::throws;

using Recompute = RankTest;

std::function<void()> capture_rng() {
  const GeneratorState now = default_generator();
  return [now] { default_generator() = now; };
}

// labels: autograd.recompute T13
TEST_F(Recompute, GradientsWithDropoutEqualThoseWithoutRecompute) {
  const Tensor w = leaf({7, 5}, 2);
  const auto segment = [&w](const std::vector<Tensor>& in) {
    return autograd::dropout(autograd::matmul_nt(in[0], w), 0.5f, next_rng());
  };
  const auto run = [&](bool again) {
    model_parallel_cuda_manual_seed(7);
    const Tensor x = leaf({4, 5}, 1);
    autograd::zero_grad(w);
    const Tensor y = again ? autograd::recompute(segment, {x}, &capture_rng) : segment({x});
    (void)next_rng();  // the generator moves on between forward and backward
    const GeneratorState before = default_generator();
    backward(y, tensor({4, 7}, 3));
    EXPECT_EQ(default_generator(), before) << "backward left another generator state";
    return std::vector<Tensor>{y.detach(), grad_of(x), grad_of(w)};
  };
  const std::vector<Tensor> plain = run(false);
  const std::vector<Tensor> again = run(true);
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(same_bits(plain[i], again[i]));
}

// labels: autograd.recompute
TEST_F(Recompute, KeepsOnlyTheInputs) {
  const Tensor x = leaf({4, 5}, 1);
  const auto segment = [](const std::vector<Tensor>& in) {
    return autograd::multiply(autograd::multiply(in[0], in[0]), in[0]);
  };
  const Tensor y = autograd::recompute(segment, {x});
  const std::vector<autograd::TapeEntry> tape = autograd::describe_tape(y);
  ASSERT_EQ(tape.size(), 1u);
  EXPECT_EQ(tape[0].name, "Recompute");
  EXPECT_EQ(tape[0].saved_bytes, 4 * 5 * 4);
}

// labels: autograd.recompute
TEST_F(Recompute, ASegmentThatWantsNoGradientEndsThere) {
  const Tensor x = leaf({3}, 1);
  const auto square = [](const std::vector<Tensor>& in) { return autograd::multiply(in[0], in[0]); };
  const Tensor constant = autograd::recompute(square, {tensor({3}, 2)});
  backward(autograd::sum(autograd::add(x, constant)));
  EXPECT_TRUE(grad_of(x).defined());
}

// labels: autograd.recompute
TEST_F(Recompute, RunsPlainUnderNoGradAndOnlyOnceBackward) {
  int calls = 0;
  const auto segment = [&calls](const std::vector<Tensor>& in) {
    ++calls;
    return autograd::scale(in[0], 2.0f);
  };
  const Tensor x = leaf({1}, 1);
  {
    const autograd::NoGradGuard guard;
    EXPECT_FALSE(autograd::recompute(segment, {x}).requires_grad());
  }
  EXPECT_EQ(calls, 1);
  const Tensor y = autograd::recompute(segment, {x});
  backward(y);
  EXPECT_EQ(calls, 3);
  EXPECT_TRUE(throws<RuntimeError>([&] { backward(y); }, {"recompute", "run already"}));
}

// labels: autograd.recompute
TEST_F(Recompute, RestoresTheGeneratorWhenTheSegmentThrows) {
  bool fails = false;
  const auto segment = [&fails](const std::vector<Tensor>& in) {
    if (fails) throw RuntimeError("segment failed");
    return autograd::dropout(in[0], 0.5f, next_rng());
  };
  const Tensor y = autograd::recompute(segment, {leaf({1}, 1)}, &capture_rng);
  (void)next_rng();
  const GeneratorState before = default_generator();
  fails = true;
  EXPECT_TRUE(throws<RuntimeError>([&] { backward(y); }, {"segment failed"}));
  EXPECT_EQ(default_generator(), before);
}

}  // namespace
}  // namespace kitchen
