#include "kitchen/ops/activation.h"

#include "kitchen/base/error.h"
#include "ops_b/test_tensors.h"
#include "support/gradcheck.h"

#include <gtest/gtest.h>

namespace kitchen::testing {
namespace {

using Values = std::vector<double>;
using ops::Activation;

constexpr Activation kAll[] = {Activation::gelu, Activation::gelu_tanh, Activation::silu,
                               Activation::relu};

double oracle(Activation activation, double h) {
  const double pi = std::acos(-1.0);
  switch (activation) {
    case Activation::gelu:
      return 0.5 * h * std::erfc(-h / std::sqrt(2.0));
    case Activation::gelu_tanh:
      return 0.5 * h * (1.0 + std::tanh(std::sqrt(2.0 / pi) * (h + 0.044715 * h * h * h)));
    case Activation::silu:
      return h / (1.0 + std::exp(-h));
    case Activation::relu:
      return h > 0.0 ? h : 0.0;
  }
  return kNaN;
}

double rounded(double value, DType dtype) {
  static const ContextPtr context = reference::make_cpu_context();
  return values_of(tensor_of(context, {1}, {value}, dtype))[0];
}

/// fp64 forward over h, rows of `cols` columns ([gate, linear] when gated).
Values oracle_forward(const Values& h, std::size_t cols, const ops::ActivationOptions& options) {
  Values y;
  for (std::size_t start = 0; start < h.size(); start += cols) {
    const std::size_t width = options.gated ? cols / 2 : cols;
    for (std::size_t c = 0; c < width; ++c) {
      double value = oracle(options.activation, h[start + c]);
      if (options.gated) value *= h[start + width + c] + options.linear_offset;
      y.push_back(value);
    }
  }
  return y;
}

Values hidden(const Values& x, const Values& bias, DType dtype) {
  Values h(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    h[i] = bias.empty() ? x[i] : rounded(x[i] + bias[i % bias.size()], dtype);
  }
  return h;
}

// labels: ops.activation
TEST(Activation, ForwardEqualsFp64) {
  for (const Activation activation : kAll) {
    for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
      for (const bool gated : {false, true}) {
        for (const std::int64_t cols : {2, 14, 512, 1026, 1030}) {
          const ContextPtr context = poisoned_context();
          const ops::ActivationOptions options{activation, gated, gated ? 1.0f : 0.0f};
          const Tensor x = normal_tensor(context, {3, cols}, dtype, 1);
          const Tensor bias = cols == 14 ? Tensor() : normal_tensor(context, {cols}, dtype, 2);
          const Tensor y = ops::activation_forward(x, bias, options);
          const Values h = hidden(values_of(x), bias.defined() ? values_of(bias) : Values(), dtype);
          // |h| < 8 and |linear| < 8: 1 + erf is good to 3 units, the products add 4, of at
          // most 64.
          EXPECT_TRUE(close(oracle_forward(h, static_cast<std::size_t>(cols), options),
                            values_of(y), 7 * 64 * kUnit32, unit_of(dtype)))
              << to_string(activation) << " " << to_string(dtype) << " " << cols;
        }
      }
    }
  }
}

// labels: ops.activation
TEST(Activation, BackwardEqualsDifferencesOfTheOracle) {
  for (const Activation activation : kAll) {
    for (const bool gated : {false, true}) {
      const ContextPtr context = poisoned_context();
      const ops::ActivationOptions options{activation, gated, gated ? 0.5f : 0.0f};
      const Tensor x = normal_tensor(context, {3, 1040}, DType::float32, 1);
      const Tensor bias = normal_tensor(context, {1040}, DType::float32, 2);
      const Tensor dy = normal_tensor(context, {3, gated ? 520 : 1040}, DType::float32, 3);
      const Tensor dx = ops::activation_backward(dy, x, bias, options);
      const Values h = hidden(values_of(x), values_of(bias), DType::float32);
      const Values gradient = values_of(dy);
      const Values got = values_of(dx);
      // The gradient of an elementwise function needs one difference an element, not a whole loss.
      const std::size_t width = gated ? 520 : 1040;
      Values want(h.size());
      const double step = 1e-6;
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        const std::size_t at = i / width * 1040 + i % width;
        const double slope =
            (oracle(activation, h[at] + step) - oracle(activation, h[at] - step)) / (2 * step);
        const double linear = gated ? h[at + width] + options.linear_offset : 1.0;
        want[at] = gradient[i] * linear * slope;
        if (gated) want[at + width] = gradient[i] * oracle(activation, h[at]);
      }
      // 12 units of products below 64; the difference quotient is good to 1e-9.
      EXPECT_TRUE(close(want, got, 12 * 64 * kUnit32, 1e-6)) << to_string(activation);
    }
  }
}

// labels: ops.activation
TEST(Activation, LargeInputsSaturateAndNaNStays) {
  for (const Activation activation : kAll) {
    const ContextPtr context = poisoned_context();
    const Tensor x = tensor_of(context, {1, 5}, {-1e30, 1e30, kNaN, -200.0, 200.0}, DType::float32);
    const Values y = values_of(ops::activation_forward(x, Tensor(), {activation, false, 0.0f}));
    EXPECT_EQ(y[0], 0.0) << to_string(activation);
    EXPECT_EQ(y[1], values_of(x)[1]) << to_string(activation);
    EXPECT_TRUE(std::isnan(y[2])) << to_string(activation);
    EXPECT_EQ(y[3], 0.0) << to_string(activation);
    EXPECT_EQ(y[4], 200.0) << to_string(activation);
    const Tensor ones = tensor_of(context, {1, 5}, Values(5, 1.0), DType::float32);
    const Values dx =
        values_of(ops::activation_backward(ones, x, Tensor(), {activation, false, 0.0f}));
    EXPECT_EQ(dx[0], 0.0) << to_string(activation);
    EXPECT_EQ(dx[1], 1.0) << to_string(activation);
    EXPECT_TRUE(std::isnan(dx[2])) << to_string(activation);
  }
}

// labels: ops.activation
TEST(Activation, BiasIsAddedAsASeparateRoundedStep) {
  const ContextPtr context = poisoned_context();
  // 256 + 1.5 = 257.5 rounds to 258 in bfloat16; relu shows h itself.
  const Tensor x = tensor_of(context, {1, 1}, {256.0}, DType::bfloat16);
  const Tensor bias = tensor_of(context, {1}, {1.5}, DType::bfloat16);
  const Tensor y = ops::activation_forward(x, bias, {Activation::relu, false, 0.0f});
  EXPECT_EQ(values_of(y), (Values{258.0}));
  // Gated, offset 0.5: 258 · (2 + 0.5) = 645 in fp32, then 644 (the spacing is 4).
  const Tensor gated = tensor_of(context, {1, 2}, {256.0, 2.0}, DType::bfloat16);
  const Tensor both = tensor_of(context, {2}, {1.5, 0.0}, DType::bfloat16);
  EXPECT_EQ(values_of(ops::activation_forward(gated, both, {Activation::relu, true, 0.5f})),
            (Values{644.0}));
}

// labels: ops.activation G13
TEST(Activation, PermutedInputsGiveTheNumbersOfTheContiguousCopy) {
  const ContextPtr context = poisoned_context();
  const Tensor x = normal_tensor(context, {6, 5, 4}, DType::float32, 1).permute({2, 0, 1});
  const Tensor copy = tensor_of(context, x.shape(), values_of(x), DType::float32);
  EXPECT_TRUE(same_bits(ops::activation_forward(copy, Tensor(), {}),
                        ops::activation_forward(x, Tensor(), {})));
  EXPECT_TRUE(same_bits(ops::activation_backward(copy, copy, Tensor(), {}),
                        ops::activation_backward(x, x, Tensor(), {})));
}

// labels: ops.activation
TEST(Activation, ResultsDoNotDependOnTheNumberOfThreadsAndNoRowsAreLegal) {
  const ContextPtr context = poisoned_context();
  const Tensor x = normal_tensor(context, {50, 1000}, DType::bfloat16, 1);
  Tensor first;
  with_one_and_two_threads([&](int threads) {
    const Tensor y = ops::activation_forward(x, Tensor(), {Activation::silu, true, 0.0f});
    if (threads == 1) first = y;
    EXPECT_TRUE(same_bits(first, y));
  });
  const Tensor none = Tensor::zeros(context, {0, 8}, DType::bfloat16);
  EXPECT_EQ(ops::activation_forward(none, Tensor(), {Activation::silu, true, 0.0f}).shape(),
            (Shape{0, 4}));
}

// labels: ops.activation
TEST(Activation, NamesRoundTripAndBadInputIsRefused) {
  for (const Activation activation : kAll) {
    EXPECT_EQ(ops::activation_from_string(ops::to_string(activation)), activation);
  }
  EXPECT_THROW((void)ops::activation_from_string("gelu2"), ValueError);
  const ContextPtr context = poisoned_context();
  const Tensor x = normal_tensor(context, {2, 7}, DType::float32, 1);
  EXPECT_THROW((void)ops::activation_forward(x, Tensor(), {Activation::silu, true, 0.0f}),
               ValueError);
  EXPECT_THROW((void)ops::activation_forward(x, x, {}), ValueError);
  EXPECT_THROW((void)ops::activation_backward(x.slice(1, 0, 6), x, Tensor(), {}), ValueError);
  EXPECT_THROW(
      (void)ops::activation_forward(Tensor::zeros(context, {2, 7}, DType::uint8), Tensor(), {}),
      TypeError);
}

}  // namespace
}  // namespace kitchen::testing
