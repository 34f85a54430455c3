#include "kitchen/ops/gemm.h"
#include "kitchen/base/error.h"
#include "kitchen/ops/elementwise.h"
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

/// alpha · a·bᵀ + bias + former in fp64 for one item of a batch.
std::vector<double> oracle(const std::vector<double>& a, const std::vector<double>& b,
                           std::int64_t m, std::int64_t n, std::int64_t k, double alpha = 1.0,
                           const std::vector<double>& bias = {},
                           const std::vector<double>& former = {}) {
  std::vector<double> d;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0.0;
      for (std::int64_t l = 0; l < k; ++l) {
        sum += a[static_cast<std::size_t>(i * k + l)] * b[static_cast<std::size_t>(j * k + l)];
      }
      sum *= alpha;
      if (!bias.empty()) sum += bias[static_cast<std::size_t>(j)];
      if (!former.empty()) sum += former[d.size()];
      d.push_back(sum);
    }
  }
  return d;
}

/// Values are multiples of 1/32 of size up to 4, so that Σ|a||b| <= 16·k and fp32 sums err by at
/// most (k + 3)·2^-24·16·k; the output rounding adds its unit roundoff.
double sum_bound(std::int64_t k) {
  return static_cast<double>((k + 3) * 16 * k) * 0x1p-24;
}

struct Sizes {
  std::int64_t m, n, k;
};

// labels: ops.gemm G01 G03
TEST(Gemm, EqualsTheOracleForRaggedSizesAllDtypesAndVariants) {
  const ContextPtr context = poisoned_context();
  // 1, primes, a tile and one more or less of it, K = 767 and K = 712.
  for (const Sizes s : {Sizes{1, 1, 1},
                        {7, 13, 5},
                        {384, 33, 16},
                        {385, 383, 3},
                        {20, 31, 767},
                        {41, 89, 712},
                        {1, 800, 64},
                        {700, 1, 64}}) {
    const auto a = grid_values(s.m * s.k, 1);
    const auto b = grid_values(s.n * s.k, 2);
    const auto expected = oracle(a, b, s.m, s.n, s.k);
    for (const DType dtype : kDTypes) {
      for (const DType out : kDTypes) {
        for (const char* variant : {"openblas", "exact"}) {
          ops::GemmOptions options;
          options.variant = variant;
          const Tensor d = ops::gemm(tensor_of(context, {s.m, s.k}, dtype, a),
                                     tensor_of(context, {s.n, s.k}, dtype, b), out, options);
          EXPECT_EQ(d.dtype(), out);
          EXPECT_TRUE(close(expected, values_of(d), sum_bound(s.k), unit_roundoff(out)))
              << s.m << "x" << s.n << "x" << s.k << " " << to_string(dtype) << " " << variant;
        }
      }
    }
  }
}

// labels: ops.gemm
TEST(Gemm, EpilogueAddsBiasAndFormerValues) {
  const ContextPtr context = poisoned_context();
  const std::int64_t m = 19;
  const std::int64_t n = 517;
  const std::int64_t k = 33;
  const auto a = grid_values(m * k, 1);
  const auto b = grid_values(n * k, 2);
  const auto bias = grid_values(n, 3);
  const auto former = grid_values(m * n, 4);
  for (const DType dtype : kDTypes) {
    for (const char* variant : {"openblas", "exact"}) {
      for (const bool accumulate : {false, true}) {
        for (const float alpha : {1.0f, -0.5f}) {
          for (const bool has_bias : {false, true}) {
            ops::GemmOptions options;
            options.variant = variant;
            options.alpha = alpha;
            if (has_bias) options.bias = tensor_of(context, {n}, DType::bfloat16, bias);
            const Tensor d = accumulate ? tensor_of(context, {m, n}, dtype, former)
                                        : Tensor::empty(context, {m, n}, dtype);
            ops::gemm_into(tensor_of(context, {m, k}, DType::bfloat16, a),
                           tensor_of(context, {n, k}, DType::float32, b), d, accumulate, options);
            const auto expected = oracle(a, b, m, n, k, static_cast<double>(alpha),
                                         has_bias ? bias : std::vector<double>{},
                                         accumulate ? former : std::vector<double>{});
            EXPECT_TRUE(close(expected, values_of(d), sum_bound(k), unit_roundoff(dtype)))
                << to_string(dtype) << " " << variant << " accumulate " << accumulate << " alpha "
                << alpha << " bias " << has_bias;
          }
        }
      }
    }
  }
}

// labels: ops.gemm
TEST(Gemm, BiasAndFormerValuesAreAddedBeforeTheOneRounding) {
  const ContextPtr context = poisoned_context();
  // 256 + 1 is a tie in bfloat16 that rounds back to 256; 256 + 1 + 1 = 258 is representable.
  for (const char* variant : {"openblas", "exact"}) {
    ops::GemmOptions options;
    options.variant = variant;
    options.bias = tensor_of(context, {1}, DType::float32, {1.0});
    const Tensor d = tensor_of(context, {1, 1}, DType::bfloat16, {256.0});
    ops::gemm_into(tensor_of(context, {1, 1}, DType::bfloat16, {1.0}),
                   tensor_of(context, {1, 1}, DType::bfloat16, {1.0}), d, true, options);
    EXPECT_EQ(values_of(d)[0], 258.0) << variant;
  }
}

// labels: ops.gemm
TEST(Gemm, ExactVariantRoundsOnce) {
  const ContextPtr context = poisoned_context();
  // 1 + 2^-8 is a bfloat16 tie (down to 1); 2^-40 above it must round up, though fp32 cannot hold
  // it.
  const Tensor a = tensor_of(context, {1, 3}, DType::float32, {1.0, 0x1p-8, 0x1p-20});
  const Tensor b = tensor_of(context, {1, 3}, DType::float32, {1.0, 1.0, 0x1p-20});
  ops::GemmOptions options;
  options.variant = "exact";
  EXPECT_EQ(values_of(ops::gemm(a, b, DType::bfloat16, options))[0], 1.0 + 0x1p-7);
  const Tensor minus = tensor_of(context, {1, 3}, DType::float32, {1.0, 1.0, -0x1p-20});
  EXPECT_EQ(values_of(ops::gemm(a, minus, DType::bfloat16, options))[0], 1.0);
}

// labels: ops.gemm G13
TEST(Gemm, TransposedViewsAndStridedOutputs) {
  const ContextPtr context = poisoned_context();
  const std::int64_t m = 37;
  const std::int64_t n = 53;
  const std::int64_t k = 29;
  const auto a = grid_values(m * k, 1);
  const auto b = grid_values(n * k, 2);
  const auto expected = oracle(a, b, m, n, k);
  for (const DType dtype : kDTypes) {
    const Tensor a_plain = tensor_of(context, {m, k}, dtype, a);
    const Tensor b_plain = tensor_of(context, {n, k}, dtype, b);
    const Tensor a_turned = ops::contiguous(a_plain.transpose(0, 1)).transpose(0, 1);
    const Tensor b_turned = ops::contiguous(b_plain.transpose(0, 1)).transpose(0, 1);
    // A view with unit stride nowhere.
    const Tensor wide = Tensor::empty(context, {m, 2 * k}, dtype);
    const Tensor a_sparse = wide.as_strided({m, k}, {2 * k, 2}, 0);
    ops::copy_into(a_plain, a_sparse);
    for (const char* variant : {"openblas", "exact"}) {
      ops::GemmOptions options;
      options.variant = variant;
      for (const Tensor& left : {a_plain, a_turned, a_sparse}) {
        for (const Tensor& right : {b_plain, b_turned}) {
          const Tensor row_major = Tensor::empty(context, {m, n + 5}, dtype).slice(1, 3, n);
          const Tensor col_major = Tensor::empty(context, {n, m}, dtype).transpose(0, 1);
          ops::gemm_into(left, right, row_major, false, options);
          ops::gemm_into(left, right, col_major, false, options);
          EXPECT_TRUE(close(expected, values_of(row_major), sum_bound(k), unit_roundoff(dtype)));
          EXPECT_TRUE(close(expected, values_of(col_major), sum_bound(k), unit_roundoff(dtype)));
        }
      }
    }
  }
}

// labels: ops.gemm G13
TEST(Gemm, TransposedViewsOfSeveralTiles) {
  const ContextPtr context = poisoned_context();
  const std::int64_t m = 1030;
  const std::int64_t n = 515;
  const std::int64_t k = 3;
  for (const DType dtype : kDTypes) {
    const Tensor a = tensor_of(context, {k, m}, dtype, grid_values(m * k, 1)).transpose(0, 1);
    const Tensor b = tensor_of(context, {k, n}, dtype, grid_values(n * k, 2)).transpose(0, 1);
    const auto expected = oracle(values_of(a), values_of(b), m, n, k);
    EXPECT_TRUE(close(expected, values_of(ops::gemm(a, b, DType::float32)), sum_bound(k), 0.0));
  }
}

// labels: ops.gemm
TEST(Gemm, BatchDimensionsThatDoNotMergeAreCopiedButNeverWritten) {
  const ContextPtr context = poisoned_context();
  const Tensor stored = tensor_of(context, {3, 2, 4, 5}, DType::float32, grid_values(120, 1));
  const Tensor a =
      stored.transpose(0, 1);  // [2, 3, 4, 5] with strides that no single batch stride has
  const Tensor b = tensor_of(context, {2, 3, 6, 5}, DType::float32, grid_values(180, 2));
  const Tensor d = ops::gemm(a, b, DType::float32);
  EXPECT_TRUE(same_bits(ops::gemm(ops::contiguous(a), b, DType::float32), d));
  const auto item =
      oracle(values_of(a.select(1).select(2)), values_of(b.select(1).select(2)), 4, 6, 5);
  EXPECT_TRUE(close(item, values_of(d.select(1).select(2)), sum_bound(5), 0.0));
  const Tensor out = Tensor::empty(context, {3, 2, 4, 6}, DType::float32).transpose(0, 1);
  EXPECT_THROW(ops::gemm_into(a, b, out, false), ValueError);
}

// labels: ops.gemm
TEST(Gemm, WritesNothingBesideTheOutput) {
  const ContextPtr context = poisoned_context();
  for (const DType dtype : kDTypes) {
    const Tensor whole = Tensor::empty(context, {9, 11}, dtype);
    ops::fill_inplace(whole, 7.0f);
    const Tensor inner = whole.slice(0, 1, 7).slice(1, 1, 9);
    const Tensor a = tensor_of(context, {7, 5}, dtype, grid_values(35, 1));
    const Tensor b = tensor_of(context, {9, 5}, dtype, grid_values(45, 2));
    ops::gemm_into(a, b, inner, false);
    ops::fill_inplace(inner, 7.0f);
    EXPECT_TRUE(close(std::vector<double>(99, 7.0), values_of(whole), 0.0, 0.0));
  }
}

// labels: ops.gemm G11
TEST(Gemm, OperandsAtOffsetOneOfABufferGiveTheSameBits) {
  const ContextPtr context = poisoned_context();
  const std::int64_t size = 128;
  for (const DType dtype : kDTypes) {
    const auto values = grid_values(size * size, 1);
    std::vector<double> shifted = values;
    shifted.insert(shifted.begin(), 123.0);
    const Tensor aligned = tensor_of(context, {size, size}, dtype, values);
    const Tensor misaligned = tensor_of(context, {size * size + 1}, dtype, shifted)
                                  .as_strided({size, size}, {size, 1}, 1);
    EXPECT_TRUE(
        same_bits(ops::gemm(aligned, aligned, dtype), ops::gemm(misaligned, misaligned, dtype)));
  }
}

// labels: ops.gemm G15
TEST(Gemm, EmptySizesGiveEmptyOrZeroResults) {
  const ContextPtr context = poisoned_context();
  for (const char* variant : {"openblas", "exact"}) {
    ops::GemmOptions options;
    options.variant = variant;
    for (const DType dtype : kDTypes) {
      const auto empty = [&](const Shape& shape) { return Tensor::empty(context, shape, dtype); };
      const std::vector<double> zeros(32, 0.0);
      EXPECT_EQ(ops::gemm(empty({0, 64}), empty({32, 64}), dtype, options).shape(), (Shape{0, 32}));
      EXPECT_EQ(ops::gemm(empty({4, 64}), empty({0, 64}), dtype, options).shape(), (Shape{4, 0}));
      EXPECT_EQ(ops::gemm(empty({0, 3, 5}), empty({0, 4, 5}), dtype, options).shape(),
                (Shape{0, 3, 4}));
      // wgrad of no rows: dyᵀ [32, 0] by xᵀ [64, 0].
      const Tensor dw =
          ops::gemm(empty({0, 32}).transpose(0, 1), empty({0, 64}).transpose(0, 1), dtype, options);
      EXPECT_TRUE(close(std::vector<double>(32 * 64, 0.0), values_of(dw), 0.0, 0.0));
      ops::GemmOptions with_bias = options;
      with_bias.bias = tensor_of(context, {8}, dtype, std::vector<double>(8, 2.0));
      EXPECT_TRUE(close(zeros, values_of(ops::gemm(empty({4, 0}), empty({8, 0}), dtype, options)),
                        0.0, 0.0));
      EXPECT_TRUE(close(std::vector<double>(32, 2.0),
                        values_of(ops::gemm(empty({4, 0}), empty({8, 0}), dtype, with_bias)), 0.0,
                        0.0));
      // Accumulating nothing changes nothing.
      const Tensor kept = tensor_of(context, {4, 8}, dtype, grid_values(32, 3));
      ops::gemm_into(empty({4, 0}), empty({8, 0}), kept, true, options);
      EXPECT_TRUE(close(grid_values(32, 3), values_of(kept), 0.0, 0.0));
    }
  }
}

// labels: ops.gemm
TEST(Gemm, BatchesOfPermutedViewsEqualTheirItems) {
  const ContextPtr context = poisoned_context();
  const std::int64_t batch = 6;
  const std::int64_t m = 40;
  const std::int64_t n = 600;
  const std::int64_t k = 16;
  for (const DType dtype : kDTypes) {
    // Heads: [m, batch, k] seen as [batch, m, k], as attention does; 4 dimensions with [2, 3] for
    // b.
    const Tensor a = tensor_of(context, {m, batch, k}, dtype, grid_values(m * batch * k, 1))
                         .permute({1, 0, 2})
                         .view({2, 3, m, k});
    const Tensor b = tensor_of(context, {2, 3, n, k}, dtype, grid_values(n * batch * k, 2));
    const Tensor d = ops::gemm(a, b, DType::float32);
    EXPECT_EQ(d.shape(), (Shape{2, 3, m, n}));
    for (std::int64_t i = 0; i < batch; ++i) {
      const auto expected = oracle(values_of(a.select(i / 3).select(i % 3)),
                                   values_of(b.select(i / 3).select(i % 3)), m, n, k);
      EXPECT_TRUE(close(expected, values_of(d.select(i / 3).select(i % 3)), sum_bound(k), 0.0));
    }
  }
}

// labels: ops.gemm
TEST(Gemm, NaNAndInfPropagateAndPoisonIsNeverRead) {
  const ContextPtr context = poisoned_context();
  for (const char* variant : {"openblas", "exact"}) {
    for (const DType dtype : kDTypes) {
      ops::GemmOptions options;
      options.variant = variant;
      const Tensor a = Tensor::zeros(context, {5, 7}, dtype);
      const Tensor b = Tensor::zeros(context, {6, 7}, dtype);
      ops::fill_inplace(a.slice(0, 2, 1).slice(1, 3, 1), NAN);
      ops::fill_inplace(b.slice(0, 4, 1).slice(1, 6, 1), INFINITY);
      const std::vector<double> d = values_of(ops::gemm(a, b, dtype, options));
      for (std::size_t i = 0; i < d.size(); ++i) {
        // Row 2 has the NaN; column 4 is 0 · Inf.
        const bool is_bad = i / 6 == 2 || i % 6 == 4;
        EXPECT_EQ(std::isnan(d[i]), is_bad) << i;
        EXPECT_TRUE(is_bad || d[i] == 0.0) << i;
      }
      options.alpha = 0.0f;
      EXPECT_TRUE(std::isnan(values_of(ops::gemm(a, b, dtype, options))[12]));
    }
  }
}

// labels: ops.gemm
TEST(Gemm, ResultsDoNotDependOnThreads) {
  const ContextPtr context = poisoned_context();
  const auto results = [&] {
    std::vector<Tensor> tensors;
    for (const DType dtype : kDTypes) {
      // Shared by threads (ragged tiles, one tile cut in two), items in parallel, serial.
      for (const Sizes s : {Sizes{515, 1030, 300}, {200, 300, 767}, {64, 64, 64}, {3, 5, 7}}) {
        for (const std::int64_t batch : {std::int64_t{1}, std::int64_t{5}}) {
          std::vector<double> a = grid_values(batch * s.m * s.k, 1);
          std::vector<double> b = grid_values(batch * s.n * s.k, 2);
          for (double& v : a) v *= 0.3 + v * v;
          const Tensor left =
              ops::cast(tensor_of(context, {batch, s.m, s.k}, DType::float32, a), dtype);
          const Tensor right =
              ops::cast(tensor_of(context, {batch, s.n, s.k}, DType::float32, b), dtype);
          tensors.push_back(ops::gemm(left, right, DType::float32));
        }
      }
    }
    return tensors;
  };
  const int threads = omp_get_max_threads();
  std::vector<std::vector<Tensor>> runs;
  for (const int count : {1, 2, 3}) {
    omp_set_num_threads(count);
    runs.push_back(results());
  }
  omp_set_num_threads(threads);
  for (std::size_t i = 0; i < runs[0].size(); ++i) {
    EXPECT_TRUE(same_bits(runs[0][i], runs[1][i])) << i;
    EXPECT_TRUE(same_bits(runs[0][i], runs[2][i])) << i;
  }
}

// labels: ops.gemm
TEST(Gemm, WrongOperandsAreRefusedWithBothShapes) {
  const ContextPtr context = poisoned_context();
  const auto zeros = [&](const Shape& shape) {
    return Tensor::zeros(context, shape, DType::float32);
  };
  try {
    (void)ops::gemm(zeros({4, 5}), zeros({6, 7}), DType::float32);
    FAIL() << "k differs";
  } catch (const ValueError& error) {
    EXPECT_NE(std::string(error.what()).find("[4, 5]"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("[6, 7]"), std::string::npos) << error.what();
  }
  EXPECT_THROW((void)ops::gemm(zeros({2, 4, 5}), zeros({3, 6, 5}), DType::float32), ValueError);
  EXPECT_THROW((void)ops::gemm(zeros({5}), zeros({6, 5}), DType::float32), ValueError);
  EXPECT_THROW((void)ops::gemm(zeros({4, 5}), zeros({6, 5}), DType::int64), TypeError);
  EXPECT_THROW(
      (void)ops::gemm(Tensor::zeros(context, {4, 5}, DType::uint8), zeros({6, 5}), DType::float32),
      TypeError);
  EXPECT_THROW(ops::gemm_into(zeros({4, 5}), zeros({6, 5}), zeros({6, 4}), false), ValueError);
  ops::GemmOptions options;
  options.bias = zeros({4});
  EXPECT_THROW((void)ops::gemm(zeros({4, 5}), zeros({6, 5}), DType::float32, options), ValueError);
  options.bias = Tensor();
  options.variant = "fastest";
  EXPECT_THROW((void)ops::gemm(zeros({4, 5}), zeros({6, 5}), DType::float32, options),
               NotImplementedError);
}

// labels: ops.gemm R05
TEST(Gemm, MetaTensorsGetShapesAndCountTheWorkspace) {
  const ContextPtr meta = make_meta_context(*reference::make_cpu_context());
  const Tensor a = Tensor::empty(meta, {100000, 30000}, DType::bfloat16);
  const Tensor b = Tensor::empty(meta, {50000, 30000}, DType::bfloat16);
  meta->allocator()->reset_peak();
  const std::int64_t before = meta->allocator()->stats().live_bytes;
  const Tensor d = ops::gemm(a, b, DType::bfloat16);
  EXPECT_EQ(d.numel(), std::int64_t{5000000000});
  // Both operands and the sums in fp32 beside the bfloat16 result: sizes beyond 32 bits.
  const std::int64_t workspace =
      4 * (std::int64_t{100000} * 30000 + std::int64_t{50000} * 30000 + d.numel());
  EXPECT_NEAR(static_cast<double>(meta->allocator()->stats().peak_bytes - before),
              static_cast<double>(workspace + 2 * d.numel()), 128.0);
}

// labels: ops.gemm base.Context
TEST(Gemm, TheVariantOfTheContextIsTakenWhenNoneIsAsked) {
  const ContextPtr context = poisoned_context();
  context->set_variant<ops::GemmKernel>("exact");
  const Tensor a = tensor_of(context, {1, 3}, DType::float32, {1.0, 0x1p-8, 0x1p-20});
  const Tensor b = tensor_of(context, {1, 3}, DType::float32, {1.0, 1.0, 0x1p-20});
  EXPECT_EQ(values_of(ops::gemm(a, b, DType::bfloat16))[0], 1.0 + 0x1p-7);
}

}  // namespace
}  // namespace kitchen
