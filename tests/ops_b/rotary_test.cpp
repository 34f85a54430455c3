#include "kitchen/ops/rotary.h"

#include "kitchen/base/error.h"
#include "ops_b/test_tensors.h"

#include <gtest/gtest.h>

#include <complex>

namespace kitchen::testing {
namespace {

using Values = std::vector<double>;

/// Pairs (i, i + r/2) as complex numbers turned by position · base^(-2i/r).
Values oracle(const Values& x, const Shape& shape, std::int64_t rotary_dim, double base) {
  Values out = x;
  const auto d = static_cast<std::size_t>(shape[3]);
  const auto half = static_cast<std::size_t>(rotary_dim / 2);
  const std::size_t rows_a_position = static_cast<std::size_t>(shape[1] * shape[2]);
  for (std::size_t row = 0; row < x.size() / d; ++row) {
    const auto position = static_cast<double>(row / rows_a_position);
    for (std::size_t i = 0; i < half; ++i) {
      const double exponent = -static_cast<double>(i) / static_cast<double>(half);
      const std::complex<double> turned =
          std::complex<double>(x[row * d + i], x[row * d + i + half]) *
          std::polar(1.0, position * std::pow(base, exponent));
      out[row * d + i] = turned.real();
      out[row * d + i + half] = turned.imag();
    }
  }
  return out;
}

// labels: ops.rotary
TEST(Rotary, RotatesHalfSplitPairs) {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    for (const std::int64_t rotary_dim : {0, 2, 6, 14}) {
      const ContextPtr context = poisoned_context();
      const Tensor x = normal_tensor(context, {37, 2, 3, 14}, dtype, 1);
      const Tensor y = ops::rotary(x, rotary_dim, 10000.0, false);
      // Two products of at most 8·1 with a sine good to one unit: 6 units of 8; then the dtype.
      EXPECT_TRUE(close(oracle(values_of(x), x.shape(), rotary_dim, 10000.0), values_of(y),
                        6 * 8 * kUnit32, unit_of(dtype)));
    }
  }
}

// labels: ops.rotary
TEST(Rotary, InverseIsTheTransposeHenceTheGradient) {
  const ContextPtr context = poisoned_context();
  const Tensor x = normal_tensor(context, {9, 1, 2, 8}, DType::float32, 1);
  const Tensor dy = normal_tensor(context, {9, 1, 2, 8}, DType::float32, 2);
  const Values forward = values_of(ops::rotary(x, 6, 100.0, false));
  const Values backward = values_of(ops::rotary(dy, 6, 100.0, true));
  const Values in = values_of(x);
  const Values out = values_of(dy);
  double a = 0.0;
  double b = 0.0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    a += forward[i] * out[i];
    b += in[i] * backward[i];
  }
  EXPECT_NEAR(a, b, 1e-4);
  EXPECT_TRUE(close(in, values_of(ops::rotary(ops::rotary(x, 6, 100.0, false), 6, 100.0, true)),
                    1e-5, 0.0));
}

// labels: ops.rotary
TEST(Rotary, PositionZeroAndElementsBeyondTheRotaryPartAreCopied) {
  const ContextPtr context = poisoned_context();
  const Tensor x = normal_tensor(context, {3, 1, 1, 8}, DType::bfloat16, 1);
  const Values y = values_of(ops::rotary(x, 4, 10000.0, false));
  const Values in = values_of(x);
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (i < 8 || i % 8 >= 4) {
      EXPECT_EQ(y[i], in[i]) << i;
    }
  }
}

// labels: ops.rotary
TEST(Rotary, StridedInputAndThreadsGiveTheSameBits) {
  const ContextPtr context = poisoned_context();
  const Tensor x = normal_tensor(context, {2, 100, 3, 64}, DType::bfloat16, 1).transpose(0, 1);
  const Tensor sliced = x.slice(3, 1, 62);
  for (const Tensor& view : {x, sliced, x.transpose(2, 3)}) {
    const Tensor copy = tensor_of(context, view.shape(), values_of(view), DType::bfloat16);
    with_one_and_two_threads([&](int) {
      const std::int64_t even = view.dim(3) - view.dim(3) % 2;
      EXPECT_TRUE(same_bits(ops::rotary(copy, even, 10000.0, false),
                            ops::rotary(view, even, 10000.0, false)));
    });
  }
}

// labels: ops.rotary
TEST(Rotary, BadInputIsRefused) {
  const ContextPtr context = poisoned_context();
  const Tensor x = normal_tensor(context, {2, 1, 1, 8}, DType::float32, 1);
  EXPECT_THROW((void)ops::rotary(x, 3, 10000.0, false), ValueError);
  EXPECT_THROW((void)ops::rotary(x, 10, 10000.0, false), ValueError);
  EXPECT_THROW((void)ops::rotary(x, -2, 10000.0, false), ValueError);
  EXPECT_THROW((void)ops::rotary(x, 4, 0.0, false), ValueError);
  EXPECT_THROW((void)ops::rotary(x.view({2, 8}), 4, 10000.0, false), ValueError);
  EXPECT_THROW((void)ops::rotary(Tensor::zeros(context, {2, 1, 1, 8}, DType::int32), 4, 1e4, false),
               TypeError);
  EXPECT_EQ(ops::rotary(x.slice(0, 0, 0), 4, 10000.0, false).shape(), (Shape{0, 1, 1, 8}));
}

}  // namespace
}  // namespace kitchen::testing
