#include "kitchen/ops/elementwise.h"
#include "kitchen/base/error.h"
#include "kitchen/reference/cpu_backend.h"
#include "support/compare.h"
#include "support/values.h"

#include <omp.h>

#include <cmath>
#include <cstring>

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

float float_of(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// Nearest even number of a format with `mantissa` stored bits and smallest normal exponent `emin`,
/// by scaling to integers in fp64; beyond `largest` Inf. Exact, since fp32 inputs have 24 bits.
double rounded(double value, int mantissa, int emin, double largest) {
  if (value == 0.0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), emin);
  const double unit = std::ldexp(1.0, exponent - mantissa);
  const double result = std::nearbyint(value / unit) * unit;
  return std::fabs(result) > largest ? std::copysign(INFINITY, value) : result;
}

// labels: ops.cast
TEST(Cast, RoundsEveryExponentToNearestEven) {
  const ContextPtr context = poisoned_context();
  std::vector<float> values;
  // Each exponent with mantissas on, beside and between the ties of both 16-bit formats.
  for (std::uint32_t exponent = 0; exponent < 255; ++exponent) {
    for (const std::uint32_t mantissa :
         {0u, 1u, 0x0FFFu, 0x1000u, 0x1001u, 0x3000u, 0x7FFFu, 0x8000u, 0x8001u, 0x18000u,
          0x2AAAAAu, 0x7FEFFFu, 0x7FF000u, 0x7F7FFFu, 0x7F8000u, 0x7FFFFFu}) {
      values.push_back(float_of(exponent << 23 | mantissa));
      values.push_back(float_of(0x80000000u | exponent << 23 | mantissa));
    }
  }
  values.push_back(INFINITY);
  values.push_back(-INFINITY);
  const auto count = static_cast<std::int64_t>(values.size());
  const Tensor x = Tensor::from_vector(context, {count}, values);
  const std::vector<double> bfloat = values_of(ops::cast(x, DType::bfloat16));
  const std::vector<double> half = values_of(ops::cast(x, DType::float16));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double v = values[i];
    const double want_bfloat = rounded(v, 7, -126, 0x1.FEp127);
    const double want_half = rounded(v, 10, -14, 65504.0);
    ASSERT_EQ(bfloat[i], want_bfloat) << v;
    ASSERT_EQ(half[i], want_half) << v;
    ASSERT_EQ(std::signbit(bfloat[i]), std::signbit(v));
    ASSERT_EQ(std::signbit(half[i]), std::signbit(v));
  }
}

// labels: ops.cast
TEST(Cast, EveryHalfAndBfloatPatternSurvivesTheRoundTrip) {
  const ContextPtr context = poisoned_context();
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    const Tensor all = Tensor::empty(context, {65536}, dtype);
    for (int i = 0; i < 65536; ++i) all.data<std::uint16_t>()[i] = static_cast<std::uint16_t>(i);
    const Tensor wide = ops::cast(all, DType::float32);
    const std::vector<std::uint16_t> back = ops::cast(wide, dtype).to_vector<std::uint16_t>();
    const std::vector<double> expected = values_of(all);
    const std::vector<double> widened = values_of(wide);
    for (std::size_t i = 0; i < back.size(); ++i) {
      if (std::isnan(expected[i])) {
        ASSERT_TRUE(std::isnan(widened[i]));
        ASSERT_EQ(back[i], 0x7FFF) << "NaN is canonical";
      } else {
        ASSERT_EQ(widened[i], expected[i]);
        ASSERT_EQ(back[i], i);
      }
    }
  }
}

// labels: ops.copy_into ops.contiguous G11 G13
TEST(CopyInto, FollowsStridesOnBothSidesForAllPairsOfDTypes) {
  const ContextPtr context = poisoned_context();
  for (const Shape& shape :
       {Shape{1}, Shape{7, 5}, Shape{3, 1, 130}, Shape{0, 4}, Shape{33, 700}, Shape{2, 3, 5, 7}}) {
    const std::int64_t numel = num_elements(shape);
    const std::vector<double> values = grid_values(numel, 5);
    for (const DType from : kDTypes) {
      for (const DType to : kDTypes) {
        // Source at offset 1 of a larger buffer, target the transpose of a buffer.
        std::vector<double> shifted = values;
        shifted.insert(shifted.begin(), 99.0);
        const Tensor buffer = tensor_of(context, {numel + 1}, from, shifted);
        const Tensor source = buffer.as_strided(shape, contiguous_strides(shape), 1);
        Shape reversed(shape.rbegin(), shape.rend());
        std::vector<int> order;
        for (int i = static_cast<int>(shape.size()); i-- > 0;) order.push_back(i);
        const Tensor target = Tensor::empty(context, reversed, to).permute(order);
        ops::copy_into(source, target);
        EXPECT_TRUE(close(values, values_of(target), 0.0, 0.0)) << to_string(shape);
        EXPECT_TRUE(close(values, values_of(ops::contiguous(target)), 0.0, 0.0));
        EXPECT_TRUE(ops::contiguous(source).shares_storage_with(buffer));
      }
    }
  }
}

// labels: ops.contiguous
TEST(Contiguous, CopiesEveryElementSize) {
  const ContextPtr context = poisoned_context();
  const Tensor ids =
      Tensor::from_vector(context, {2, 3}, std::vector<std::int64_t>{1, 2, 3, 4, 5, 6});
  EXPECT_EQ(ops::contiguous(ids.transpose(0, 1)).to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{1, 4, 2, 5, 3, 6}));
  const Tensor codes = Tensor::from_vector(context, {2, 2}, std::vector<std::uint8_t>{1, 2, 3, 4});
  EXPECT_EQ(ops::contiguous(codes.transpose(0, 1)).to_vector<std::uint8_t>(),
            (std::vector<std::uint8_t>{1, 3, 2, 4}));
}

// labels: ops.add ops.multiply ops.scale ops.add_inplace ops.fill_inplace
TEST(Elementwise, ArithmeticRoundsOnceToTheFirstOperandsDType) {
  const ContextPtr context = poisoned_context();
  for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1023},
                                   std::int64_t{1025}, std::int64_t{40001}}) {
    const std::vector<double> a = grid_values(count, 1);
    const std::vector<double> b = grid_values(count, 2);
    std::vector<double> sum, product, scaled, axpy;
    for (std::size_t i = 0; i < a.size(); ++i) {
      sum.push_back(a[i] + b[i]);
      product.push_back(a[i] * b[i]);
      scaled.push_back(a[i] * -0.75);
      axpy.push_back(a[i] + 0.5 * b[i]);
    }
    for (const DType first : kDTypes) {
      for (const DType second : kDTypes) {
        const Tensor x = tensor_of(context, {count}, first, a);
        const Tensor y = tensor_of(context, {count}, second, b);
        // Sums and products of the grid values are exact in fp32: one rounding is all the error.
        const double u = first == DType::float32 ? 0.0 : unit_roundoff(first);
        EXPECT_TRUE(close(sum, values_of(ops::add(x, y)), 0.0, u));
        EXPECT_TRUE(close(product, values_of(ops::multiply(x, y)), 0.0, u));
        EXPECT_TRUE(close(scaled, values_of(ops::scale(x, -0.75f)), 0.0, u));
        EXPECT_EQ(ops::add(x, y).dtype(), first);
        ops::add_inplace(x, y, 0.5f);
        EXPECT_TRUE(close(axpy, values_of(x), 0.0, u));
        ops::fill_inplace(x, 1.5f);
        EXPECT_TRUE(close(std::vector<double>(a.size(), 1.5), values_of(x), 0.0, 0.0));
        ops::scale_inplace(x, 2.0f);
        EXPECT_TRUE(close(std::vector<double>(a.size(), 3.0), values_of(x), 0.0, 0.0));
      }
    }
  }
}

// labels: ops.add_inplace ops.fill_inplace ops.scale
TEST(Elementwise, InPlaceOpsTouchOnlyTheView) {
  const ContextPtr context = poisoned_context();
  const Tensor whole = tensor_of(context, {4, 6}, DType::bfloat16, std::vector<double>(24, 1.0));
  const Tensor part = whole.slice(1, 2, 3);
  ops::fill_inplace(part, 2.0f);
  ops::add_inplace(part, part);
  ops::scale_inplace(part, 0.25f);
  std::vector<double> expected(24, 1.0);  // (2 + 2)·0.25 = 1 again: change one more to see it
  ops::fill_inplace(whole.slice(0, 3, 1).slice(1, 5, 1), -8.0f);
  expected[23] = -8.0;
  EXPECT_TRUE(close(expected, values_of(whole), 0.0, 0.0));
  ops::add_inplace(part, tensor_of(context, {4, 3}, DType::float32, grid_values(12, 3)));
  EXPECT_TRUE(close(std::vector<double>(8, 1.0), values_of(whole.slice(1, 0, 2)), 0.0, 0.0));
}

// labels: ops.add_bias ops.sum_rows G15
TEST(Elementwise, BiasIsAddedToRowsAndItsGradientSumsThem) {
  const ContextPtr context = poisoned_context();
  for (const Shape& shape :
       {Shape{1, 1}, Shape{127, 3}, Shape{129, 131}, Shape{2, 150, 257}, Shape{0, 5}, Shape{5}}) {
    const std::int64_t cols = shape.back();
    const std::vector<double> x = grid_values(num_elements(shape), 7);
    const std::vector<double> bias = grid_values(cols, 8);
    std::vector<double> with_bias = x;
    std::vector<double> sums(static_cast<std::size_t>(cols));
    for (std::size_t i = 0; i < x.size(); ++i) {
      with_bias[i] += bias[i % static_cast<std::size_t>(cols)];
      sums[i % static_cast<std::size_t>(cols)] += x[i];
    }
    for (const DType dtype : kDTypes) {
      const Tensor rows = tensor_of(context, shape, dtype, x);
      const Tensor out = ops::add_bias(rows, tensor_of(context, {cols}, DType::float32, bias));
      EXPECT_EQ(out.shape(), shape);
      const double u = dtype == DType::float32 ? 0.0 : unit_roundoff(dtype);
      EXPECT_TRUE(close(with_bias, values_of(out), 0.0, u));
      // Multiples of 1/32 below 2^19 are exact in fp32: the sums have no error at all.
      EXPECT_TRUE(close(sums, values_of(ops::sum_rows(rows)), 0.0, 0.0)) << to_string(shape);
      const Tensor target = tensor_of(context, {cols}, DType::float32, bias);
      ops::sum_rows_into(rows, target);
      std::vector<double> total = sums;
      for (std::size_t i = 0; i < total.size(); ++i) total[i] += bias[i];
      EXPECT_TRUE(close(total, values_of(target), 0.0, 0.0));
    }
  }
}

// labels: ops.sum_rows
TEST(SumRows, AddsChunksOf128RowsInAscendingOrder) {
  const ContextPtr context = poisoned_context();
  // 2^24 + 1 is lost in fp32 if the ones are added one by one to the large value, but not when the
  // second chunk of 128 ones is summed on its own first.
  std::vector<float> x(256, 0.0f);
  x[0] = 16777216.0f;
  for (std::size_t r = 128; r < 256; ++r) x[r] = 1.0f;
  const Tensor sums = ops::sum_rows(Tensor::from_vector(context, {256, 1}, x));
  EXPECT_EQ(sums.to_vector<float>()[0], 16777216.0f + 128.0f);
  x[1] = 1.0f;  // inside the first chunk it is lost
  EXPECT_EQ(ops::sum_rows(Tensor::from_vector(context, {256, 1}, x)).to_vector<float>()[0],
            16777216.0f + 128.0f);
}

// labels: ops.sum_all R05
TEST(SumAll, SumsInFp64) {
  const ContextPtr context = poisoned_context();
  for (const std::int64_t count : {0, 1, 4095, 4096, 4097, 50000}) {
    const std::vector<double> x = grid_values(count, 9);
    double sum = 0.0;
    for (const double v : x) sum += v;
    for (const DType dtype : kDTypes) {
      const Tensor out = ops::sum_all(tensor_of(context, {count}, dtype, x));
      EXPECT_EQ(out.shape(), (Shape{1}));
      EXPECT_EQ(static_cast<double>(out.to_vector<float>()[0]), sum);
    }
  }
}

// labels: ops.cast ops.sum_rows ops.add
TEST(Elementwise, ResultsDoNotDependOnThreads) {
  const ContextPtr context = poisoned_context();
  std::vector<double> x = grid_values(300 * 1000, 3);
  for (double& v : x) v *= 1.0 + 0x1p-10 * v;  // not exact any more: order matters
  const Tensor a = tensor_of(context, {300, 1000}, DType::float32, x);
  const auto results = [&] {
    return std::vector<Tensor>{ops::sum_rows(a), ops::sum_all(a), ops::cast(a, DType::bfloat16),
                               ops::add(a, a), ops::contiguous(a.transpose(0, 1))};
  };
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  const std::vector<Tensor> one = results();
  omp_set_num_threads(2);
  const std::vector<Tensor> two = results();
  omp_set_num_threads(threads);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(same_bits(one[i], two[i])) << i;
}

// labels: ops.add ops.cast ops.sum_rows
TEST(Elementwise, WrongOperandsAreRefusedWithTheirShapesAndDTypes) {
  const ContextPtr context = poisoned_context();
  const Tensor x = Tensor::zeros(context, {2, 3}, DType::float32);
  const Tensor y = Tensor::zeros(context, {3, 2}, DType::float32);
  const Tensor ids = Tensor::zeros(context, {2, 3}, DType::int64);
  try {
    (void)ops::add(x, y);
    FAIL() << "shapes differ";
  } catch (const ValueError& error) {
    EXPECT_NE(std::string(error.what()).find("[3, 2]"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("[2, 3]"), std::string::npos) << error.what();
  }
  EXPECT_THROW((void)ops::multiply(x, y), ValueError);
  EXPECT_THROW((void)ops::add(x, ids), TypeError);
  EXPECT_THROW((void)ops::cast(ids, DType::float32), TypeError);
  EXPECT_THROW((void)ops::cast(x, DType::int64), TypeError);
  EXPECT_THROW((void)ops::add_bias(x, y), ValueError);
  EXPECT_THROW(ops::sum_rows_into(x, Tensor::zeros(context, {3}, DType::bfloat16)), TypeError);
  EXPECT_THROW(ops::sum_rows_into(x, Tensor::zeros(context, {2}, DType::float32)), ValueError);
  EXPECT_THROW(ops::copy_into(x, y), ValueError);
  EXPECT_THROW(ops::add_inplace(x, Tensor::zeros(context, {5}, DType::float32)), ValueError);
  EXPECT_THROW((void)ops::sum_rows(Tensor::zeros(context, {}, DType::float32)), ValueError);
  EXPECT_THROW((void)ops::add(x, Tensor::zeros(poisoned_context(), {2, 3}, DType::float32)),
               ValueError);
}

// labels: ops.add ops.sum_rows R05
TEST(Elementwise, MetaTensorsOfMoreThanTwoToThe31ElementsHaveTheirShapes) {
  const ContextPtr meta = make_meta_context(*reference::make_cpu_context());
  const Tensor x = Tensor::empty(meta, {65536, 65537}, DType::bfloat16);
  EXPECT_EQ(ops::add(x, x).numel(), std::int64_t{65536} * 65537);
  EXPECT_EQ(ops::cast(x, DType::float32).dtype(), DType::float32);
  EXPECT_EQ(ops::sum_rows(x).shape(), (Shape{65537}));
  EXPECT_EQ(ops::contiguous(x.transpose(0, 1)).shape(), (Shape{65537, 65536}));
}

}  // namespace
}  // namespace kitchen
