#include "kitchen/base/error.h"
#include "kitchen/base/rng.h"
#include "kitchen/ops/dropout.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/ops/init.h"
#include "kitchen/reference/cpu_backend.h"
#include "support/compare.h"
#include "support/values.h"

#include <omp.h>

#include <cmath>

namespace kitchen {
namespace {

using testing::close;
using testing::grid_values;
using testing::poisoned_context;
using testing::same_bits;
using testing::tensor_of;
using testing::unit_roundoff;
using testing::values_of;

constexpr DType kDTypes[] = {DType::float32, DType::bfloat16, DType::float16};

// labels: base.Rng
TEST(FillWords, EqualsTheWordsOneByOne) {
  for (const std::uint64_t first :
       {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{0xFFFFFFF0}}) {
    for (const std::int64_t blocks : {0, 1, 31, 32, 33, 100}) {
      const Rng rng{0x123456789ABCDEFu, 0xFEDCBA987654321u};
      std::vector<std::uint32_t> words(static_cast<std::size_t>(4 * blocks + 1), 77);
      fill_words(rng, first, blocks, words.data());
      for (std::size_t i = 0; i + 1 < words.size(); ++i) {
        ASSERT_EQ(words[i], rng.word(4 * first + i)) << i;
      }
      EXPECT_EQ(words.back(), 77u) << "written past the end";
    }
  }
}

// labels: ops.dropout
TEST(Dropout, MaskIsAFunctionOfTheIndexAlone) {
  const ContextPtr context = poisoned_context();
  const Rng rng{42, 7};
  for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1023},
                                   std::int64_t{1026}, std::int64_t{20001}}) {
    const auto x = grid_values(count, 1);
    for (const float p : {0.0f, 0.1f, 0.75f}) {
      std::vector<double> expected;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const bool keep = static_cast<double>(rng.word(i) >> 8) * 0x1p-24 >= static_cast<double>(p);
        expected.push_back(keep ? x[i] / (1.0 - static_cast<double>(p)) : 0.0);
      }
      for (const DType dtype : kDTypes) {
        const Tensor out = ops::dropout(tensor_of(context, {count}, dtype, x), p, rng);
        // 1 - p and the quotient round once each in fp32, then the output.
        const double u = dtype == DType::float32 ? 0.0 : unit_roundoff(dtype);
        EXPECT_TRUE(close(expected, values_of(out), 0.0, 3 * 0x1p-24 + u * (1 + 0x1p-20)));
      }
    }
  }
}

// labels: ops.dropout
TEST(Dropout, DropsTheAskedShareAndEvenNaN) {
  const ContextPtr context = poisoned_context();
  const std::int64_t count = 100000;
  const Tensor ones = tensor_of(context, {count}, DType::float32,
                                std::vector<double>(static_cast<std::size_t>(count), 1.0));
  std::int64_t dropped = 0;
  for (const double v : values_of(ops::dropout(ones, 0.25f, Rng{1, 2})))
    dropped += v == 0.0 ? 1 : 0;
  // Binomial: standard deviation sqrt(1e5·0.25·0.75) = 137; six of them.
  EXPECT_NEAR(static_cast<double>(dropped), 25000.0, 822.0);
  ops::fill_inplace(ones, NAN);
  std::int64_t zeros = 0;
  for (const double v : values_of(ops::dropout(ones, 0.25f, Rng{1, 2}))) zeros += v == 0.0 ? 1 : 0;
  EXPECT_EQ(zeros, dropped);
}

// labels: ops.bias_dropout_add
TEST(BiasDropoutAdd, HasTheBitsOfTheThreeOps) {
  const ContextPtr context = poisoned_context();
  const Rng rng{3, 4};
  for (const Shape& shape :
       {Shape{1, 1}, Shape{3, 700}, Shape{2, 5, 1031}, Shape{0, 4}, Shape{9000, 3}}) {
    std::vector<double> values = grid_values(num_elements(shape), 1);
    for (const DType dtype : kDTypes) {
      const Tensor x = tensor_of(context, shape, dtype, values);
      const Tensor residual = tensor_of(context, shape, dtype, grid_values(num_elements(shape), 2));
      const Tensor bias = tensor_of(context, {shape.back()}, dtype, grid_values(shape.back(), 3));
      for (const float p : {0.0f, 0.3f}) {
        const Tensor expected = ops::add(residual, ops::dropout(ops::add_bias(x, bias), p, rng));
        EXPECT_TRUE(same_bits(expected, ops::bias_dropout_add(x, bias, residual, p, rng)))
            << to_string(shape) << " " << to_string(dtype);
        EXPECT_TRUE(same_bits(ops::add(residual, ops::dropout(x, p, rng)),
                              ops::bias_dropout_add(x, Tensor(), residual, p, rng)));
      }
    }
  }
}

// labels: ops.dropout ops.bias_dropout_add
TEST(Dropout, WrongOperandsAreRefused) {
  const ContextPtr context = poisoned_context();
  const Tensor x = Tensor::zeros(context, {2, 3}, DType::float32);
  for (const float p : {-0.1f, 1.0f, NAN})
    EXPECT_THROW((void)ops::dropout(x, p, Rng{}), ValueError);
  EXPECT_THROW((void)ops::dropout(Tensor::zeros(context, {2}, DType::int64), 0.1f, Rng{}),
               TypeError);
  EXPECT_THROW((void)ops::bias_dropout_add(x, Tensor(), x.transpose(0, 1), 0.1f, Rng{}),
               ValueError);
  EXPECT_THROW(
      (void)ops::bias_dropout_add(x, Tensor::zeros(context, {2}, DType::float32), x, 0.1f, Rng{}),
      ValueError);
}

// labels: ops.normal_init base.Rng
TEST(NormalInit, ValuesAreBoxMullerOfTheGlobalIndex) {
  const ContextPtr context = poisoned_context();
  const Tensor out = Tensor::empty(context, {3, 5}, DType::float32);
  ops::normal_init(out, 99, 1.0, 0.5, {3, 5}, {0, 0});
  const Rng rng{99, 0};
  std::vector<double> expected;
  for (std::uint64_t i = 0; i < 15; ++i) {
    const double u1 = (rng.word(2 * i) + 1.0) / 4294967296.0;
    const double u2 = rng.word(2 * i + 1) / 4294967296.0;
    expected.push_back(1.0 + 0.5 * std::sqrt(-2.0 * std::log(u1)) * std::cos(2.0 * M_PI * u2));
  }
  EXPECT_TRUE(close(expected, values_of(out), 0x1p-24, 0x1p-24));
}

// labels: ops.normal_init
TEST(NormalInit, EverySplitHoldsTheBitsOfTheWhole) {
  const ContextPtr context = poisoned_context();
  for (const DType dtype : kDTypes) {
    const Shape global = {3, 7, 2051};
    const Tensor whole = Tensor::empty(context, global, dtype);
    ops::normal_init(whole, 5, 0.0, 0.02, global, {0, 0, 0});
    for (std::size_t axis = 0; axis < 3; ++axis) {
      // Odd starts: a pair of numbers of one Philox block is then split between two blocks of the
      // tensor.
      for (const std::int64_t start : {0, 1, 2}) {
        Shape shape = global;
        Shape offset = {0, 0, 0};
        offset[axis] = start;
        shape[axis] = std::min<std::int64_t>(global[axis] - start, 1025);
        const Tensor part = Tensor::empty(context, shape, dtype);
        ops::normal_init(part, 5, 0.0, 0.02, global, offset);
        EXPECT_TRUE(
            same_bits(whole.slice(static_cast<std::int64_t>(axis), start, shape[axis]), part));
      }
    }
  }
}

// labels: ops.normal_init
TEST(NormalInit, MomentsAreThoseOfTheNormalDistribution) {
  const ContextPtr context = poisoned_context();
  const std::int64_t count = 200000;
  const Tensor out = Tensor::empty(context, {count}, DType::float32);
  ops::normal_init(out, 11, 0.0, 1.0, {count}, {0});
  double sum = 0.0, squares = 0.0, fourth = 0.0;
  for (const double v : values_of(out)) {
    sum += v;
    squares += v * v;
    fourth += v * v * v * v;
  }
  const auto n = static_cast<double>(count);
  // Six standard deviations of the sample moments: 1/sqrt(n), sqrt(2/n), sqrt(96/n).
  EXPECT_NEAR(sum / n, 0.0, 6.0 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1.0, 6.0 * std::sqrt(2.0 / n));
  EXPECT_NEAR(fourth / n, 3.0, 6.0 * std::sqrt(96.0 / n));
}

// labels: ops.normal_init R05
TEST(NormalInit, GlobalIndicesBeyondTwoToThe32AreDistinct) {
  const ContextPtr context = poisoned_context();
  const Tensor low = Tensor::empty(context, {1, 8}, DType::float32);
  const Tensor high = Tensor::empty(context, {1, 8}, DType::float32);
  const Shape global = {8589934592, 8};
  ops::normal_init(low, 1, 0.0, 1.0, global, {0, 0});
  ops::normal_init(high, 1, 0.0, 1.0, global, {4294967296, 0});
  EXPECT_FALSE(same_bits(low, high));
  const double expected = normal_at(Rng{1, 0}, std::uint64_t{4294967296} * 8);
  EXPECT_EQ(high.to_vector<float>()[0], static_cast<float>(expected));
}

// labels: ops.normal_init G15
TEST(NormalInit, EmptyBlocksAndWrongBlocks) {
  const ContextPtr context = poisoned_context();
  ops::normal_init(Tensor::empty(context, {0, 4}, DType::float32), 1, 0.0, 1.0, {8, 4}, {8, 0});
  const Tensor out = Tensor::zeros(context, {2, 4}, DType::float32);
  EXPECT_THROW(ops::normal_init(out, 1, 0.0, 1.0, {2, 4}, {1, 0}), ValueError);
  EXPECT_THROW(ops::normal_init(out, 1, 0.0, 1.0, {8}, {0}), ValueError);
  EXPECT_THROW(ops::normal_init(out.transpose(0, 1), 1, 0.0, 1.0, {4, 2}, {0, 0}), ValueError);
  EXPECT_THROW(ops::normal_init(Tensor::zeros(context, {2}, DType::int64), 1, 0.0, 1.0, {2}, {0}),
               TypeError);
}

// labels: ops.dropout ops.bias_dropout_add ops.normal_init
TEST(RandomOps, ResultsDoNotDependOnThreads) {
  const ContextPtr context = poisoned_context();
  const Tensor x = tensor_of(context, {111, 1001}, DType::bfloat16, grid_values(111 * 1001, 1));
  const auto results = [&] {
    const Tensor drawn = Tensor::empty(context, {111, 1001}, DType::bfloat16);
    ops::normal_init(drawn, 1, 0.0, 0.02, {111, 1001}, {0, 0});
    return std::vector<Tensor>{drawn, ops::dropout(x, 0.1f, Rng{1, 2}),
                               ops::bias_dropout_add(x, Tensor(), drawn, 0.1f, Rng{1, 2})};
  };
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  const std::vector<Tensor> one = results();
  omp_set_num_threads(2);
  const std::vector<Tensor> two = results();
  omp_set_num_threads(threads);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(same_bits(one[i], two[i])) << i;
}

}  // namespace
}  // namespace kitchen
