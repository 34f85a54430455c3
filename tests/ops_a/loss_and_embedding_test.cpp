#include "kitchen/base/error.h"
#include "kitchen/ops/cross_entropy.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/ops/embedding.h"
#include "kitchen/reference/cpu_backend.h"
#include "support/compare.h"
#include "support/gradcheck.h"
#include "support/values.h"

#include <omp.h>

#include <cmath>

namespace kitchen {
namespace {

using testing::close;
using testing::gradients_match;
using testing::grid_values;
using testing::poisoned_context;
using testing::same_bits;
using testing::tensor_of;
using testing::unit_roundoff;
using testing::values_of;

constexpr DType kDTypes[] = {DType::float32, DType::bfloat16, DType::float16};

Tensor labels_of(const ContextPtr& context, const std::vector<std::int64_t>& labels) {
  return Tensor::from_vector(context, {static_cast<std::int64_t>(labels.size())}, labels);
}

/// -log softmax at the label in fp64; 0 for the ignored label.
std::vector<double> oracle_losses(const std::vector<double>& logits, std::int64_t columns,
                                  std::int64_t vocab_size,
                                  const std::vector<std::int64_t>& labels) {
  std::vector<double> losses;
  for (std::size_t t = 0; t < labels.size(); ++t) {
    const double* row = logits.data() + static_cast<std::int64_t>(t) * columns;
    double sum = 0.0;
    for (std::int64_t v = 0; v < vocab_size; ++v) sum += std::exp(row[v]);
    losses.push_back(labels[t] == ops::kIgnoredLabel ? 0.0 : std::log(sum) - row[labels[t]]);
  }
  return losses;
}

// labels: ops.cross_entropy T05
TEST(CrossEntropy, LossesEqualTheOracle) {
  const ContextPtr context = poisoned_context();
  const std::vector<std::int64_t> labels = {0, ops::kIgnoredLabel, 1, 0};
  for (const std::int64_t vocab_size : {2, 15, 16, 17, 1023, 1025, 5003}) {
    for (const std::int64_t padding : {0, 3}) {
      const std::int64_t columns = vocab_size + padding;
      const auto logits = grid_values(4 * columns, 1);
      const auto expected = oracle_losses(logits, columns, vocab_size, labels);
      for (const DType dtype : kDTypes) {
        const ops::CrossEntropyResult result =
            ops::cross_entropy_forward(tensor_of(context, {4, columns}, dtype, logits),
                                       labels_of(context, labels), vocab_size);
        // exp errs by 3e-7 relative, the sum of v terms in 16 lanes by (v/16 + 4)·2^-24 relative,
        // both become absolute in the logarithm (1e-7 · 13); lse <= 13 and the subtraction round by
        // 2^-24·13.
        const double bound =
            3e-7 + (static_cast<double>(vocab_size) / 16 + 4) * 0x1p-24 + 1.3e-6 + 2 * 0x1p-24 * 13;
        EXPECT_TRUE(close(expected, values_of(result.losses), bound, 0.0)) << vocab_size;
      }
    }
  }
}

// labels: ops.cross_entropy
TEST(CrossEntropy, LargeLogitsNeitherOverflowNorVanish) {
  const ContextPtr context = poisoned_context();
  const Tensor logits = Tensor::from_vector(
      context, {3, 2}, std::vector<float>{3e38f, 3e38f, -3e38f, -3e38f, 80.0f, -80.0f});
  const ops::CrossEntropyResult result =
      ops::cross_entropy_forward(logits, labels_of(context, {0, 1, 1}), 2);
  // lse rounds to ±3e38 at that size: the loss is 0 there by fp32, and 160 in the last row.
  EXPECT_TRUE(close({0.0, 0.0, 160.0}, values_of(result.losses), 0.0, 1e-6));
}

// labels: ops.cross_entropy
TEST(CrossEntropy, GradientEqualsCentralDifferences) {
  const ContextPtr context = poisoned_context();
  const std::vector<std::int64_t> labels = {4, ops::kIgnoredLabel, 0};
  const std::int64_t vocab_size = 19;
  const std::int64_t columns = 21;
  const std::vector<double> weights = {0.5, 3.0, -2.0};  // dlosses
  const auto logits = grid_values(3 * columns, 2);
  const auto oracle = [&](const std::vector<std::vector<double>>& in) {
    const auto losses = oracle_losses(in[0], columns, vocab_size, labels);
    double sum = 0.0;
    for (std::size_t t = 0; t < losses.size(); ++t) sum += weights[t] * losses[t];
    return sum;
  };
  for (const DType dtype : kDTypes) {
    const Tensor x = tensor_of(context, {3, columns}, dtype, logits);
    const Tensor target = labels_of(context, labels);
    const ops::CrossEntropyResult forward = ops::cross_entropy_forward(x, target, vocab_size);
    const Tensor dx = ops::cross_entropy_backward_inplace(
        tensor_of(context, {3}, DType::float32, weights), x, target, forward.lse, vocab_size);
    EXPECT_TRUE(dx.shares_storage_with(x));
    // exp and the error of lse give 3e-6 relative to p <= 1, times |dloss| <= 3; then the output
    // rounding.
    EXPECT_TRUE(gradients_match(oracle, {logits}, {values_of(dx)}, 1e-5, 2 * unit_roundoff(dtype)))
        << to_string(dtype);
    const std::vector<double> values = values_of(dx);
    for (std::size_t i = 21; i < 42; ++i) EXPECT_EQ(values[i], 0.0) << "ignored token";
    for (const std::size_t i : {19u, 20u, 61u, 62u}) EXPECT_EQ(values[i], 0.0) << "padding";
  }
}

// labels: ops.cross_entropy T05
TEST(CrossEntropy, AllLabelsIgnoredGiveZerosEvenForNaNLogits) {
  const ContextPtr context = poisoned_context();
  const Tensor labels = labels_of(context, std::vector<std::int64_t>(2, ops::kIgnoredLabel));
  for (const bool poisoned : {false, true}) {
    const Tensor logits = tensor_of(context, {2, 10}, DType::float32, grid_values(20, 1));
    if (poisoned) ops::fill_inplace(logits, NAN);
    const ops::CrossEntropyResult forward = ops::cross_entropy_forward(logits, labels, 10);
    EXPECT_TRUE(close({0.0, 0.0}, values_of(forward.losses), 0.0, 0.0));
    const Tensor dx = ops::cross_entropy_backward_inplace(
        tensor_of(context, {2}, DType::float32, {1.0, 1.0}), logits, labels, forward.lse, 10);
    EXPECT_TRUE(close(std::vector<double>(20, 0.0), values_of(dx), 0.0, 0.0));
  }
}

// labels: ops.cross_entropy T21
TEST(CrossEntropy, PerTokenMeanIsTheSameForOneBatchAndForUnequalParts) {
  const ContextPtr context = poisoned_context();
  // Four samples of five tokens; 3 tokens count in the first half, 7 in the second: the mean is
  // over 10.
  std::vector<std::int64_t> labels(20, ops::kIgnoredLabel);
  for (const std::size_t t : {1u, 4u, 8u, 10u, 11u, 12u, 13u, 16u, 18u, 19u}) {
    labels[t] = static_cast<std::int64_t>(t);
  }
  const auto logits = grid_values(20 * 33, 4);
  const auto backward = [&](std::int64_t first, std::int64_t count, double* loss) {
    const Tensor x = tensor_of(context, {20, 33}, DType::float32, logits).slice(0, first, count);
    const Tensor target = labels_of(context, labels).slice(0, first, count);
    const ops::CrossEntropyResult forward = ops::cross_entropy_forward(x, target, 33);
    for (const double v : values_of(forward.losses)) *loss += v / 10.0;
    const Tensor weights = Tensor::empty(context, {count}, DType::float32);
    ops::fill_inplace(weights, 0.1f);
    return ops::cross_entropy_backward_inplace(weights, x, target, forward.lse, 33);
  };
  double whole_loss = 0.0;
  double parts_loss = 0.0;
  const Tensor whole = backward(0, 20, &whole_loss);
  EXPECT_TRUE(same_bits(whole.slice(0, 0, 10), backward(0, 10, &parts_loss)));
  EXPECT_TRUE(same_bits(whole.slice(0, 10, 10), backward(10, 10, &parts_loss)));
  EXPECT_TRUE(close({whole_loss}, {parts_loss}, 0.0, 1e-15));
}

// labels: ops.cross_entropy
TEST(CrossEntropy, NaNLogitsAndUnknownLabelsShowAsNaN) {
  const ContextPtr context = poisoned_context();
  const Tensor logits = tensor_of(context, {3, 40}, DType::bfloat16, grid_values(120, 1));
  ops::fill_inplace(logits.slice(0, 0, 1).slice(1, 17, 1), NAN);
  const Tensor labels = labels_of(context, {1, 40, -1});
  const ops::CrossEntropyResult forward = ops::cross_entropy_forward(logits, labels, 40);
  for (const double loss : values_of(forward.losses)) EXPECT_TRUE(std::isnan(loss));
  const Tensor dx = ops::cross_entropy_backward_inplace(
      tensor_of(context, {3}, DType::float32, {1.0, 1.0, 1.0}), logits, labels, forward.lse, 40);
  for (const double gradient : values_of(dx)) EXPECT_TRUE(std::isnan(gradient));
}

// labels: ops.cross_entropy G15
TEST(CrossEntropy, NoTokensAndWrongOperands) {
  const ContextPtr context = poisoned_context();
  const Tensor none = Tensor::empty(context, {0, 8}, DType::float32);
  EXPECT_EQ(ops::cross_entropy_forward(none, labels_of(context, {}), 8).losses.numel(), 0);
  const Tensor logits = Tensor::zeros(context, {2, 8}, DType::float32);
  const Tensor labels = labels_of(context, {1, 2});
  EXPECT_THROW((void)ops::cross_entropy_forward(logits, labels, 9), ValueError);
  EXPECT_THROW((void)ops::cross_entropy_forward(logits, labels, 0), ValueError);
  EXPECT_THROW((void)ops::cross_entropy_forward(logits, labels_of(context, {1}), 8), ValueError);
  EXPECT_THROW(
      (void)ops::cross_entropy_forward(logits, Tensor::zeros(context, {2}, DType::int32), 8),
      TypeError);
  EXPECT_THROW(
      (void)ops::cross_entropy_forward(Tensor::zeros(context, {2, 8}, DType::uint8), labels, 8),
      TypeError);
}

// labels: ops.cross_entropy ops.embedding
TEST(CrossEntropy, ResultsDoNotDependOnThreads) {
  const ContextPtr context = poisoned_context();
  const std::int64_t tokens = 37;
  const std::int64_t vocab_size = 5003;
  std::vector<std::int64_t> labels;
  for (std::int64_t t = 0; t < tokens; ++t) labels.push_back(t * 131 % 97);
  const Tensor target = labels_of(context, labels);
  const auto results = [&] {
    const Tensor x = tensor_of(context, {tokens, vocab_size}, DType::bfloat16,
                               grid_values(tokens * vocab_size, 3));
    const Tensor dtable = Tensor::zeros(context, {97, vocab_size}, DType::float32);
    ops::embedding_backward_into(x, target, dtable);
    const ops::CrossEntropyResult forward = ops::cross_entropy_forward(x, target, vocab_size);
    const Tensor dx =
        ops::cross_entropy_backward_inplace(forward.losses, x, target, forward.lse, vocab_size);
    return std::vector<Tensor>{forward.losses, forward.lse, dx, dtable,
                               ops::embedding_forward(target, dtable)};
  };
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  const std::vector<Tensor> one = results();
  omp_set_num_threads(2);
  const std::vector<Tensor> two = results();
  omp_set_num_threads(threads);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(same_bits(one[i], two[i])) << i;
}

// labels: ops.embedding
TEST(Embedding, PicksRowsAndZerosForIdsOfOtherRanks) {
  const ContextPtr context = poisoned_context();
  const auto values = grid_values(5 * 7, 1);
  const Tensor ids =
      Tensor::from_vector(context, {2, 3}, std::vector<std::int64_t>{10, 14, 9, 15, 12, -1});
  for (const DType dtype : kDTypes) {
    const Tensor table = tensor_of(context, {5, 7}, dtype, values);
    const Tensor out = ops::embedding_forward(ids, table, 10);
    EXPECT_EQ(out.shape(), (Shape{2, 3, 7}));
    std::vector<double> expected;
    for (const std::int64_t row : {0, 4, -1, -1, 2, -1}) {
      for (std::int64_t c = 0; c < 7; ++c) {
        expected.push_back(row < 0 ? 0.0 : values[static_cast<std::size_t>(row * 7 + c)]);
      }
    }
    EXPECT_TRUE(close(expected, values_of(out), 0.0, 0.0));
    // A table that is a column slice of a wider one.
    const Tensor sliced = ops::embedding_forward(ids, table.slice(1, 2, 3), 10);
    EXPECT_EQ(values_of(sliced)[0], values[2]);
  }
}

// labels: ops.embedding
TEST(Embedding, GradientAddsTheTokensOfEachRow) {
  const ContextPtr context = poisoned_context();
  const Tensor ids = Tensor::from_vector(context, {6}, std::vector<std::int64_t>{3, 1, 3, 7, 0, 3});
  for (const std::int64_t cols : {1, 127, 129, 300}) {
    const auto dy = grid_values(6 * cols, 1);
    const auto start = grid_values(4 * cols, 2);
    const auto oracle = [&](const std::vector<std::vector<double>>& in) {
      double sum = 0.0;  // Σ dy · table[ids]
      const std::int64_t rows[] = {3, 1, 3, -1, 0, 3};
      for (std::size_t t = 0; t < 6; ++t) {
        if (rows[t] < 0) continue;
        for (std::int64_t c = 0; c < cols; ++c) {
          sum += dy[t * static_cast<std::size_t>(cols) + static_cast<std::size_t>(c)] *
                 in[0][static_cast<std::size_t>(rows[t] * cols + c)];
        }
      }
      return sum;
    };
    for (const DType dtype : kDTypes) {
      const Tensor dtable = tensor_of(context, {4, cols}, DType::float32, start);
      ops::embedding_backward_into(tensor_of(context, {6, cols}, dtype, dy), ids, dtable);
      std::vector<double> gradient = values_of(dtable);
      for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] -= start[i];
      // The oracle is linear and the values are exact: only the quotient's own error of about 1e-7
      // remains.
      EXPECT_TRUE(gradients_match(oracle, {start}, {gradient}, 1e-6, 0.0)) << cols;
    }
  }
}

// labels: ops.embedding G15
TEST(Embedding, NoTokensAndWrongOperands) {
  const ContextPtr context = poisoned_context();
  const Tensor table = Tensor::zeros(context, {4, 5}, DType::float32);
  const Tensor none = Tensor::empty(context, {0}, DType::int64);
  EXPECT_EQ(ops::embedding_forward(none, table).shape(), (Shape{0, 5}));
  ops::embedding_backward_into(Tensor::empty(context, {0, 5}, DType::float32), none, table);
  EXPECT_TRUE(close(std::vector<double>(20, 0.0), values_of(table), 0.0, 0.0));
  EXPECT_THROW((void)ops::embedding_forward(table, table), TypeError);
  const Tensor ids = Tensor::zeros(context, {3}, DType::int64);
  EXPECT_THROW((void)ops::embedding_forward(ids, table.transpose(0, 1)), ValueError);
  EXPECT_THROW(
      ops::embedding_backward_into(Tensor::zeros(context, {2, 5}, DType::float32), ids, table),
      ValueError);
  EXPECT_THROW(ops::embedding_backward_into(Tensor::zeros(context, {3, 5}, DType::float32), ids,
                                            Tensor::zeros(context, {4, 5}, DType::bfloat16)),
               TypeError);
}

}  // namespace
}  // namespace kitchen
