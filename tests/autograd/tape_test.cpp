#include "kitchen/autograd/backward.h"
#include "kitchen/autograd/function.h"
#include "kitchen/autograd/math_functions.h"
#include "kitchen/autograd/nn_functions.h"
#include "kitchen/autograd/view_functions.h"
#include "kitchen/ops/elementwise.h"
#include "support/compare.h"
#include "support/expect_error.h"
#include "support/rank_test.h"

#include <gtest/gtest.h>

namespace kitchen {
namespace {

using autograd::backward;
using autograd::grad_of;
using testing::close;
using testing::RankTest;
using testing::same_bits;
using testing::throws;
using testing::values_of;

using Tape = RankTest;

/// Identity that notes when its backward runs.
struct Mark : autograd::Function<Mark> {
  struct Saved {
    int id = 0;
    std::vector<int>* order = nullptr;
    [[nodiscard]] std::vector<Tensor> tensors() const { return {}; }
  };
  static constexpr const char* kName = "Mark";
  static Tensor forward(autograd::FunctionContext<Saved>& ctx, const Tensor& x, int id,
                        std::vector<int>* order) {
    ctx.saved = {id, order};
    return ops::scale(x, 1.0f);
  }
  static std::vector<Tensor> backward(autograd::FunctionContext<Saved>& ctx,
                                      const std::vector<Tensor>& grads) {
    ctx.saved.order->push_back(ctx.saved.id);
    return {grads[0]};
  }
};

/// A function whose backward forgets an input.
struct Wrong : autograd::Function<Wrong> {
  struct Saved {
    [[nodiscard]] std::vector<Tensor> tensors() const { return {}; }
  };
  static constexpr const char* kName = "Wrong";
  static Tensor forward(autograd::FunctionContext<Saved>& /*ctx*/, const Tensor& a,
                        const Tensor& b) {
    return ops::add(a, b);
  }
  static std::vector<Tensor> backward(autograd::FunctionContext<Saved>& /*ctx*/,
                                      const std::vector<Tensor>& grads) {
    return {grads[0]};
  }
};

Tensor ones_like(const Tensor& x) {
  Tensor ones = Tensor::empty(x.context(), x.shape(), x.dtype());
  ops::fill_inplace(ones, 1.0f);
  return ones;
}

// labels: autograd.backward
TEST_F(Tape, ATensorThatIsUsedTwiceSumsItsGradients) {
  const Tensor x = leaf({5}, 1);
  // y = 3x + x·x: dy/dx = 3 + 2x, exact in fp32 for these values.
  const Tensor y = autograd::add(autograd::scale(x, 3.0f), autograd::multiply(x, x));
  backward(autograd::sum(y));
  std::vector<double> expected = values_of(x.detach());
  for (double& value : expected) value = 3.0 + 2.0 * value;
  EXPECT_TRUE(close(expected, values_of(grad_of(x)), 0.0, 0.0));
}

// labels: autograd.backward
TEST_F(Tape, NodesRunNewestFirstAndEachOnce) {
  std::vector<int> order;
  const Tensor x = leaf({3}, 1);
  const Tensor a = Mark::apply(x, 1, &order);
  const Tensor b = Mark::apply(a, 2, &order);
  const Tensor c = Mark::apply(a, 3, &order);
  backward(autograd::sum(autograd::add(autograd::add(b, c), a)));
  EXPECT_EQ(order, (std::vector<int>{3, 2, 1}));
  EXPECT_EQ(values_of(grad_of(x)), (std::vector<double>{3.0, 3.0, 3.0}));
}

// labels: autograd.backward
TEST_F(Tape, GradientsOfSeveralBackwardsAddUpUntilZeroGrad) {
  const Tensor x = leaf({4}, 1);
  for (int i = 0; i < 3; ++i) backward(autograd::sum(autograd::scale(x, 2.0f)));
  EXPECT_EQ(values_of(grad_of(x)), (std::vector<double>(4, 6.0)));
  autograd::zero_grad(x);
  EXPECT_FALSE(grad_of(x).defined());
}

// labels: autograd.backward
TEST_F(Tape, LeavesDoNotShareTheStorageOfTheirGradients) {
  const Tensor a = leaf({4}, 1);
  const Tensor b = leaf({4}, 2);
  const Tensor seed = tensor({4}, 3);
  backward(autograd::add(a, b), seed);
  EXPECT_FALSE(grad_of(a).shares_storage_with(grad_of(b)));
  EXPECT_FALSE(grad_of(a).shares_storage_with(seed));
  ops::scale_inplace(grad_of(a), 0.0f);
  EXPECT_TRUE(same_bits(seed, grad_of(b)));
}

// labels: autograd.backward
TEST_F(Tape, ASecondBackwardIsRefused) {
  const Tensor x = leaf({3}, 1);
  const Tensor y = autograd::multiply(x, x);
  const Tensor root = autograd::sum(y);
  backward(root);
  EXPECT_TRUE(throws<RuntimeError>([&] { backward(root); }, {"Sum", "backward was run already"}));
  // A second root over the same part of the graph meets the freed node.
  EXPECT_TRUE(throws<RuntimeError>([&] { backward(autograd::sum(autograd::scale(y, 2.0f))); },
                                   {"Multiply", "run forward again"}));
}

// labels: autograd.backward
TEST_F(Tape, RootsThatCannotBeDifferentiatedAreRefused) {
  const Tensor x = leaf({3}, 1);
  const Tensor y = autograd::scale(x, 2.0f);
  EXPECT_TRUE(throws<ValueError>([&] { backward(y); }, {"[3]", "one element"}));
  EXPECT_TRUE(throws<ValueError>([&] { backward(y, tensor({2}, 1)); }, {"[2]", "[3]"}));
  EXPECT_TRUE(throws<TypeError>([&] { backward(y, tensor({3}, 1, DType::bfloat16)); },
                                {"bfloat16", "float32"}));
  EXPECT_TRUE(throws<ValueError>([&] { backward(tensor({1}, 1)); }, {"does not require grad"}));
}

// labels: autograd.NoGradGuard
TEST_F(Tape, NothingIsRecordedUnderNoGrad) {
  const Tensor x = leaf({3}, 1);
  Tensor y;
  {
    const autograd::NoGradGuard guard;
    EXPECT_FALSE(autograd::grad_enabled());
    y = autograd::multiply(x, x);
    {
      const autograd::GradModeGuard inner(true);
      EXPECT_TRUE(autograd::multiply(x, x).requires_grad());
    }
    EXPECT_FALSE(autograd::grad_enabled());
  }
  EXPECT_TRUE(autograd::grad_enabled());
  EXPECT_FALSE(y.requires_grad());
  EXPECT_TRUE(throws<ValueError>([&] { backward(autograd::sum(y)); }, {"NoGradGuard"}));
  EXPECT_TRUE(x.requires_grad());
}

// labels: autograd.set_requires_grad
TEST_F(Tape, OnlyLeavesOfHighPrecisionMayWantAGradient) {
  EXPECT_TRUE(throws<ValueError>(
      [&] { autograd::set_requires_grad(Tensor::zeros(context, {2}, DType::int64)); }, {"int64"}));
  const Tensor y = autograd::scale(leaf({2}, 1), 2.0f);
  EXPECT_TRUE(throws<ValueError>([&] { autograd::set_requires_grad(y, false); }, {"no leaf"}));
  const Tensor x = leaf({2}, 1);
  autograd::set_requires_grad(x, false);
  EXPECT_FALSE(autograd::scale(x, 2.0f).requires_grad());
}

// labels: base.Tensor autograd.view_functions
TEST_F(Tape, ARawViewOfATensorInAGraphIsRefused) {
  const Tensor x = leaf({4, 6}, 1);
  const Tensor y = autograd::scale(x, 2.0f);
  for (const Tensor& t : {x, y}) {
    EXPECT_TRUE(throws<RuntimeError>([&] { (void)t.view({24}); }, {"cut the graph"}));
    EXPECT_TRUE(throws<RuntimeError>([&] { (void)t.transpose(0, 1); }, {"kitchen::autograd"}));
    EXPECT_TRUE(throws<RuntimeError>([&] { (void)t.slice(0, 0, 1); }, {"detach()"}));
    EXPECT_TRUE(throws<RuntimeError>([&] { (void)t.select(0); }, {"cut the graph"}));
    EXPECT_NO_THROW((void)t.detach().view({24}));
  }
}

// labels: autograd.Function
TEST_F(Tape, AnUndefinedGradientStandsForZero) {
  const Tensor x = leaf({2, 6}, 1);
  const Tensor unused = leaf({2, 2}, 2);
  const std::vector<Tensor> parts = autograd::split(x, 1, {2, 1, 3});
  backward(autograd::sum(parts[1]));  // the other pieces get none
  EXPECT_EQ(values_of(grad_of(x)),
            (std::vector<double>{0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0}));
  // A function of two inputs of which one wants no gradient.
  const Tensor constant = tensor({2, 2}, 3);
  backward(autograd::sum(autograd::multiply(unused, constant)));
  EXPECT_TRUE(same_bits(constant, grad_of(unused)));
  EXPECT_FALSE(grad_of(constant).defined());
}

// labels: autograd.Function
TEST_F(Tape, ABackwardWithTheWrongNumberOfGradientsIsNamed) {
  const Tensor y = Wrong::apply(leaf({1}, 1), leaf({1}, 2));
  EXPECT_TRUE(throws<RuntimeError>([&] { backward(y); }, {"Wrong", "1 gradients for 2"}));
}

// labels: autograd.backward T11
TEST_F(Tape, GradientsAccumulateIntoMainGradInItsPrecision) {
  const Tensor x = leaf({3}, 1, DType::bfloat16);
  const Tensor main_grad = Tensor::zeros(context, {3}, DType::float32);
  ops::fill_inplace(main_grad, 0.001f);  // lost beside 1 in bfloat16, kept in float32
  autograd::variable_meta(x)->main_grad = main_grad;
  int calls = 0;
  autograd::variable_meta(x)->on_accumulated = [&] { ++calls; };
  for (int i = 0; i < 4; ++i) backward(autograd::sum(x));
  EXPECT_FALSE(grad_of(x).defined());
  EXPECT_EQ(calls, 4);
  const float step = ((((0.001f + 1.0f) + 1.0f) + 1.0f) + 1.0f);
  EXPECT_EQ(main_grad.to_vector<float>(), (std::vector<float>(3, step)));
}

// labels: autograd.backward T11
TEST_F(Tape, AGradientBesideAFusedOneIsRefused) {
  const Tensor x = leaf({3}, 1);
  autograd::variable_meta(x)->grad_added_to_main_grad = true;
  EXPECT_TRUE(throws<RuntimeError>([&] { backward(autograd::sum(x)); }, {"fused wgrad"}));
}

// labels: autograd.describe_tape
TEST_F(Tape, DescribesNodesEdgesAndSavedBytes) {
  const Tensor x = leaf({8, 4}, 1);
  const Tensor w = leaf({3, 4}, 2);
  const Tensor y = autograd::matmul_nt(x, w);       // saves x (128 bytes) and w (48)
  const Tensor z = autograd::multiply(y, y);        // saves y (96), once
  const Tensor again = autograd::matmul_nt(x, w);   // its operands are counted already
  const Tensor root = autograd::sum(autograd::add(z, again));
  const std::vector<autograd::TapeEntry> tape = autograd::describe_tape(root);
  std::vector<std::string> names;
  std::int64_t bytes = 0;
  for (const autograd::TapeEntry& entry : tape) {
    names.push_back(entry.name);
    bytes += entry.saved_bytes;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"Sum", "Add", "MatmulNT", "Multiply", "MatmulNT"}));
  EXPECT_EQ(tape[0].inputs, (std::vector<std::size_t>{1}));
  EXPECT_EQ(tape[1].inputs, (std::vector<std::size_t>{3, 2}));
  EXPECT_EQ(tape[3].inputs, (std::vector<std::size_t>{4, 4}));
  EXPECT_EQ(bytes, 128 + 48 + 96);
  EXPECT_TRUE(autograd::describe_tape(x).empty());
}

// labels: autograd.describe_tape
TEST_F(Tape, SavedBytesHoldTheMaskOfASoftmax) {
  const Tensor scores = leaf({1, 1, 2, 4}, 1);
  const Tensor mask = Tensor::zeros(context, {1, 1, 2, 4}, DType::boolean);
  const Tensor probs = autograd::softmax(scores, mask, {});
  EXPECT_EQ(autograd::describe_tape(probs)[0].saved_bytes, 8 * 4 + 8);
}

// labels: autograd.backward
TEST_F(Tape, ALongChainIsRunAndFreed) {
  const Tensor x = leaf({1}, 1);
  Tensor y = x;
  for (int i = 0; i < 20000; ++i) y = autograd::scale(y, 1.0f);
  backward(y, ones_like(x));
  EXPECT_EQ(values_of(grad_of(x)), (std::vector<double>{1.0}));
}

}  // namespace
}  // namespace kitchen
