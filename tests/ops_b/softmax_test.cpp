#include "kitchen/ops/softmax.h"

#include "kitchen/base/error.h"
#include "ops_b/test_tensors.h"
#include "support/gradcheck.h"

#include <gtest/gtest.h>

namespace kitchen::testing {
namespace {

using Values = std::vector<double>;

/// fp64 softmax of rows of `sk` after scaling and masking; `mask` has one flag a score or is empty.
Values oracle_forward(const Values& scores, const Values& mask, std::size_t sq, std::size_t sk,
                      const ops::SoftmaxOptions& options) {
  Values probs(scores.size());
  for (std::size_t start = 0; start < scores.size(); start += sk) {
    const auto query = static_cast<std::int64_t>(start / sk % sq);
    Values row(sk);
    double largest = -INFINITY;
    for (std::size_t j = 0; j < sk; ++j) {
      const std::int64_t last =
          query + static_cast<std::int64_t>(sk) - static_cast<std::int64_t>(sq);
      const bool is_masked = (options.causal && static_cast<std::int64_t>(j) > last) ||
                             (!mask.empty() && mask[start + j] != 0.0);
      row[j] = is_masked ? options.masked_value : scores[start + j] * options.scale;
      largest = std::max(largest, row[j]);
    }
    double sum = 0.0;
    for (double& value : row) {
      value = largest == -INFINITY ? 0.0 : std::exp(value - largest);
      sum += value;
    }
    for (std::size_t j = 0; j < sk; ++j) probs[start + j] = sum == 0.0 ? 0.0 : row[j] / sum;
  }
  return probs;
}

// labels: ops.softmax
TEST(Softmax, ForwardEqualsFp64) {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    for (const bool causal : {false, true}) {
      for (const float masked : {-10000.0f, -INFINITY}) {
        for (const auto& [sq, sk] : std::vector<std::pair<std::int64_t, std::int64_t>>{
                 {1, 1}, {1, 9}, {5, 7}, {7, 5}, {64, 64}, {16, 33}}) {
          const ContextPtr context = poisoned_context();
          const ops::SoftmaxOptions options{0.7f, causal, masked};
          const Tensor scores = normal_tensor(context, {2, 3, sq, sk}, dtype, 1);
          const Tensor probs = ops::softmax_forward(scores, Tensor(), options);
          const Values want = oracle_forward(values_of(scores), {}, static_cast<std::size_t>(sq),
                                             static_cast<std::size_t>(sk), options);
          // Argument error: |t| < 8 to 2 units; exp 2 units; sum sk / 8 + 3 units; quotient 1.
          EXPECT_TRUE(close(want, values_of(probs), 0x1p-25 + 1e-37, 32 * kUnit32 + unit_of(dtype)))
              << sq << "x" << sk << " " << to_string(dtype);
        }
      }
    }
  }
}

// labels: ops.softmax
TEST(Softmax, MaskBroadcastsOverSizesOfOne) {
  const ContextPtr context = poisoned_context();
  const Tensor scores = normal_tensor(context, {2, 3, 4, 5}, DType::float32, 1);
  for (const Shape& shape : {Shape{2, 1, 1, 5}, Shape{1, 1, 4, 5}, Shape{2, 3, 4, 5},
                             Shape{1, 1, 4, 1}, Shape{2, 3, 1, 1}}) {
    std::vector<int> flags(static_cast<std::size_t>(num_elements(shape)));
    for (std::size_t i = 0; i < flags.size(); ++i) flags[i] = i % 3 == 1;
    Values full;
    for (std::int64_t b = 0; b < 2; ++b) {
      for (std::int64_t h = 0; h < 3; ++h) {
        for (std::int64_t i = 0; i < 4; ++i) {
          for (std::int64_t j = 0; j < 5; ++j) {
            const std::int64_t at =
                ((b % shape[0] * shape[1] + h % shape[1]) * shape[2] + i % shape[2]) * shape[3] +
                j % shape[3];
            full.push_back(flags[static_cast<std::size_t>(at)]);
          }
        }
      }
    }
    const Tensor mask = mask_of(context, shape, flags);
    for (const float masked : {-10000.0f, -INFINITY}) {
      const ops::SoftmaxOptions options{1.0f, false, masked};
      EXPECT_TRUE(close(oracle_forward(values_of(scores), full, 4, 5, options),
                        values_of(ops::softmax_forward(scores, mask, options)), 1e-6, 1e-6));
    }
  }
}

// labels: ops.softmax A03
TEST(Softmax, FullyMaskedRowIsZeroUnderMinusInfinityAndUniformUnderMinusTenThousand) {
  const ContextPtr context = poisoned_context();
  const Tensor scores = normal_tensor(context, {1, 1, 8, 8}, DType::float32, 1);
  std::vector<int> flags(64, 0);
  std::fill(flags.begin() + 32, flags.end(), 1);
  const Tensor mask = mask_of(context, {1, 1, 8, 8}, flags);
  const Values zero = values_of(ops::softmax_forward(scores, mask, {1.0f, false, -INFINITY}));
  const Values uniform = values_of(ops::softmax_forward(scores, mask, {1.0f, false, -10000.0f}));
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(zero[i], i < 32 ? uniform[i] : 0.0);
    if (i >= 32) {
      EXPECT_EQ(uniform[i], 0.125);
    }
  }
  const Tensor dprobs = normal_tensor(context, {1, 1, 8, 8}, DType::float32, 2);
  const Tensor probs = ops::softmax_forward(scores, mask, {});
  const Values dscores = values_of(ops::softmax_backward(dprobs, probs, mask, {}));
  for (std::size_t i = 32; i < 64; ++i) EXPECT_EQ(dscores[i], 0.0);
}

// labels: ops.softmax A07
TEST(Softmax, LargeLogitsDoNotOverflow) {
  const ContextPtr context = poisoned_context();
  const Tensor scores = tensor_of(context, {1, 1, 1, 3}, {151.29, 150.0, -200.0}, DType::float32);
  const Tensor probs = ops::softmax_forward(scores, Tensor(), {});
  EXPECT_TRUE(close({0.784, 0.216, 0.0}, values_of(probs), 1e-3, 0.0));
  const Tensor ones = tensor_of(context, {1, 1, 1, 3}, {1.0, 2.0, 3.0}, DType::float32);
  EXPECT_TRUE(close({-0.1694, 0.1694, 0.0},
                    values_of(ops::softmax_backward(ones, probs, Tensor(), {})), 1e-3, 0.0));
}

// labels: ops.softmax
TEST(Softmax, BackwardEqualsDifferencesOfTheOracle) {
  const ContextPtr context = poisoned_context();
  const ops::SoftmaxOptions options{0.6f, true, -INFINITY};
  const Tensor scores = normal_tensor(context, {1, 2, 3, 5}, DType::float32, 1);
  const Tensor dprobs = normal_tensor(context, {1, 2, 3, 5}, DType::float32, 2);
  std::vector<int> flags(15, 0);
  flags[1] = flags[7] = 1;
  const Tensor mask = mask_of(context, {1, 1, 3, 5}, flags);
  Values full(flags.begin(), flags.end());
  full.insert(full.end(), flags.begin(), flags.end());
  const Tensor probs = ops::softmax_forward(scores, mask, options);
  const Tensor dscores = ops::softmax_backward(dprobs, probs, mask, options);
  const Values weights = values_of(dprobs);
  const auto loss = [&](const std::vector<Values>& in) {
    const Values p = oracle_forward(in[0], full, 3, 5, options);
    double sum = 0.0;
    for (std::size_t i = 0; i < p.size(); ++i) sum += weights[i] * p[i];
    return sum;
  };
  EXPECT_TRUE(gradients_match(loss, {values_of(scores)}, {values_of(dscores)}, 2e-6, 2e-6));
}

// labels: ops.softmax A05
TEST(Softmax, NaNMakesItsRowNaNUnlessItIsMasked) {
  const ContextPtr context = poisoned_context();
  Values values = normals(8, 1);
  values[5] = kNaN;
  const Tensor scores = tensor_of(context, {1, 1, 2, 4}, values, DType::float32);
  const Values open = values_of(ops::softmax_forward(scores, Tensor(), {}));
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(std::isnan(open[i]), i >= 4) << i;
  const Tensor mask = mask_of(context, {1, 1, 1, 4}, {0, 1, 0, 0});
  for (const double p : values_of(ops::softmax_forward(scores, mask, {}))) {
    EXPECT_FALSE(std::isnan(p));
  }
  // Only -inf beside the NaN: still NaN, not the 0 of an empty row.
  const Tensor alone =
      tensor_of(context, {1, 1, 1, 3}, {-INFINITY, kNaN, -INFINITY}, DType::float32);
  for (const double p : values_of(ops::softmax_forward(alone, Tensor(), {}))) {
    EXPECT_TRUE(std::isnan(p));
  }
}

// labels: ops.softmax
TEST(Softmax, ResultsDoNotDependOnTheNumberOfThreadsAndEmptyShapesAreLegal) {
  const ContextPtr context = poisoned_context();
  const Tensor scores = normal_tensor(context, {2, 4, 64, 65}, DType::bfloat16, 1);
  Tensor first;
  Tensor first_gradient;
  with_one_and_two_threads([&](int threads) {
    const Tensor probs = ops::softmax_forward(scores, Tensor(), {});
    const Tensor gradient = ops::softmax_backward(scores, probs, Tensor(), {});
    if (threads == 1) {
      first = probs;
      first_gradient = gradient;
    }
    EXPECT_TRUE(same_bits(first, probs));
    EXPECT_TRUE(same_bits(first_gradient, gradient));
  });
  const Tensor empty = Tensor::zeros(context, {1, 2, 0, 3}, DType::bfloat16);
  EXPECT_EQ(ops::softmax_forward(empty, Tensor(), {}).shape(), empty.shape());
  const Tensor no_keys = Tensor::zeros(context, {1, 2, 3, 0}, DType::bfloat16);
  EXPECT_EQ(ops::softmax_forward(no_keys, Tensor(), {}).shape(), no_keys.shape());
}

// labels: ops.softmax
TEST(Softmax, BadOperandsAreRefused) {
  const ContextPtr context = poisoned_context();
  const Tensor scores = normal_tensor(context, {1, 1, 2, 4}, DType::float32, 1);
  EXPECT_THROW((void)ops::softmax_forward(scores.view({2, 4}), Tensor(), {}), ValueError);
  EXPECT_THROW((void)ops::softmax_forward(scores, scores, {}), TypeError);
  EXPECT_THROW(
      (void)ops::softmax_forward(scores, mask_of(context, {1, 1, 2, 3}, {0, 0, 0, 0, 0, 0}), {}),
      ValueError);
  EXPECT_THROW(
      (void)ops::softmax_forward(scores, mask_of(context, {2, 4}, std::vector<int>(8, 0)), {}),
      ValueError);
  EXPECT_THROW((void)ops::softmax_backward(scores.slice(2, 0, 1), scores, Tensor(), {}),
               ValueError);
}

}  // namespace
}  // namespace kitchen::testing
