#include "kitchen/modules/vocab_parallel_cross_entropy.h"

#include "kitchen/autograd/backward.h"
#include "kitchen/autograd/node.h"
#include "kitchen/base/error.h"
#include "kitchen/parallel/collective_recorder.h"
#include "support/compare.h"
#include "support/expect_error.h"
#include "support/ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace kitchen {
namespace {

using testing::close;
using testing::on_ranks;
using testing::throws;
using testing::values_of;

using Values = std::vector<double>;

/// Logits [tokens, columns] with labels, and what a cross entropy over the first `vocab` columns
/// is.
struct Case {
  std::int64_t columns = 0;
  std::int64_t vocab = 0;
  Values logits;
  std::vector<std::int64_t> labels;

  [[nodiscard]] std::int64_t tokens() const { return static_cast<std::int64_t>(labels.size()); }
  [[nodiscard]] double at(std::int64_t t, std::int64_t v) const {
    return logits[static_cast<std::size_t>(t * columns + v)];
  }
  [[nodiscard]] double log_sum(std::int64_t t) const {
    double largest = at(t, 0);
    for (std::int64_t v = 1; v < vocab; ++v) largest = std::max(largest, at(t, v));
    double sum = 0.0;
    for (std::int64_t v = 0; v < vocab; ++v) sum += std::exp(at(t, v) - largest);
    return largest + std::log(sum);
  }
  [[nodiscard]] Values losses() const {
    Values all;
    for (std::int64_t t = 0; t < tokens(); ++t) {
      const std::int64_t label = labels[static_cast<std::size_t>(t)];
      all.push_back(label == -100 ? 0.0 : log_sum(t) - at(t, label));
    }
    return all;
  }
  /// Gradient of Σ (t + 1)·loss[t] of the columns [first, first + count).
  [[nodiscard]] Values gradient(std::int64_t first, std::int64_t count) const {
    Values all;
    for (std::int64_t t = 0; t < tokens(); ++t) {
      const std::int64_t label = labels[static_cast<std::size_t>(t)];
      for (std::int64_t v = first; v < first + count; ++v) {
        const bool counts = label != -100 && v < vocab;
        const double p = counts ? std::exp(at(t, v) - log_sum(t)) : 0.0;
        all.push_back(static_cast<double>(t + 1) * (p - (counts && v == label ? 1.0 : 0.0)));
      }
    }
    return all;
  }
};

Case make_case(std::int64_t columns, std::int64_t vocab, std::vector<std::int64_t> labels) {
  Case made{columns, vocab, {}, std::move(labels)};
  made.logits = testing::grid_values(made.tokens() * columns, 3);
  return made;
}

/// The columns of one rank.
Tensor part_of(const Case& whole, int rank, int ranks, DType dtype) {
  const std::int64_t count = whole.columns / ranks;
  Values values;
  for (std::int64_t t = 0; t < whole.tokens(); ++t) {
    for (std::int64_t v = 0; v < count; ++v) values.push_back(whole.at(t, rank * count + v));
  }
  return testing::tensor_of(default_context(), {whole.tokens(), count}, dtype, values);
}

/// Bounds: fp32 sums of at most 64 terms and values below 128 leave about 1e-6 of the largest; a
/// bfloat16 gradient is rounded once, 2^-8 of its value.
void expect_as_one_rank(const Case& whole, int ranks, DType dtype = DType::float32) {
  on_ranks(ranks, [&](int rank) {
    const Tensor logits = part_of(whole, rank, ranks, dtype);
    autograd::set_requires_grad(logits);
    const Tensor labels = Tensor::from_vector(default_context(), {whole.tokens()}, whole.labels);
    const Tensor losses = vocab_parallel_cross_entropy(logits, labels, whole.vocab);
    EXPECT_TRUE(close(whole.losses(), values_of(losses.detach()), 1e-6, 1e-6));
    std::vector<float> weights;
    for (std::int64_t t = 0; t < whole.tokens(); ++t) weights.push_back(static_cast<float>(t + 1));
    autograd::backward(losses, Tensor::from_vector(default_context(), {whole.tokens()}, weights));
    const std::int64_t count = whole.columns / ranks;
    EXPECT_TRUE(close(whole.gradient(rank * count, count), values_of(autograd::grad_of(logits)),
                      4e-6, dtype == DType::float32 ? 4e-6 : 1.0 / 256.0));
  });
}

// labels: P11 modules.vocab_parallel_cross_entropy
TEST(VocabParallelCrossEntropy, EqualsThatOfOneRankWhereOneLogitIsLarge) {
  Case whole = make_case(8, 8, {0, 3, 4, 7});
  whole.logits[13] = 80.0;  // token 1, id 5: of the second rank, the label is of the first
  expect_as_one_rank(whole, 2);
  whole.logits[13] = -80.0;
  expect_as_one_rank(whole, 2);
}

// labels: P09 P11 modules.vocab_parallel_cross_entropy
TEST(VocabParallelCrossEntropy, PaddedColumnsTakeNoPart) {
  for (const int ranks : {2, 4}) {
    // 13 of 16 ids: with 4 ranks the last one holds one id and three columns of padding.
    Case whole = make_case(16, 13, {12, -100, 0, 5, 11});
    for (std::size_t t = 0; t < 5; ++t) {
      for (std::size_t v = 13; v < 16; ++v) whole.logits[t * 16 + v] = 1e4;
    }
    expect_as_one_rank(whole, ranks);
  }
}

// labels: P09 modules.vocab_parallel_cross_entropy
TEST(VocabParallelCrossEntropy, RankThatHoldsOnlyPaddingTakesPart) {
  expect_as_one_rank(make_case(64, 30, {29, 0, 7}), 4);
}

// labels: P11 modules.vocab_parallel_cross_entropy
TEST(VocabParallelCrossEntropy, Bfloat16LogitsAndNoTokens) {
  expect_as_one_rank(make_case(34, 34, {33, 17, 16, 0}), 2, DType::bfloat16);
  expect_as_one_rank(make_case(8, 8, {}), 2);
}

// labels: P11 modules.vocab_parallel_cross_entropy
TEST(VocabParallelCrossEntropy, ReducesTheMaximumThenTheSumsAndNothingInBackward) {
  on_ranks(2, [](int rank) {
    const Case whole = make_case(8, 8, {0, 7});
    const Tensor logits = part_of(whole, rank, 2, DType::float32);
    autograd::set_requires_grad(logits);
    const CollectiveRecorder recorder;
    const Tensor losses = vocab_parallel_cross_entropy(
        logits, Tensor::from_vector(default_context(), {2}, whole.labels), 8);
    autograd::backward(losses, Tensor::from_vector<float>(default_context(), {2}, {1, 1}));
    EXPECT_EQ(recorder.lines(),
              (std::vector<std::string>{"forward all_reduce tp", "forward all_reduce tp"}));
  });
}

// labels: modules.vocab_parallel_cross_entropy
TEST(VocabParallelCrossEntropy, UnknownLabelGivesNaNAndATooLargeVocabularyIsRefused) {
  on_ranks(2, [](int rank) {
    const Tensor logits = part_of(make_case(8, 6, {0}), rank, 2, DType::float32);
    const Tensor label = Tensor::from_vector<std::int64_t>(default_context(), {1}, {6});
    EXPECT_TRUE(std::isnan(values_of(vocab_parallel_cross_entropy(logits, label, 6))[0]));
    EXPECT_TRUE(throws<ValueError>([&] { (void)vocab_parallel_cross_entropy(logits, label, 9); },
                                   {"2 ranks with 4", "9"}));
  });
}

}  // namespace
}  // namespace kitchen
