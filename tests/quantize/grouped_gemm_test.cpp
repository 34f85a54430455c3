#include "kitchen/ops/grouped_gemm.h"

#include "kitchen/base/error.h"
#include "quantize/gemm_oracle.h"
#include "support/expect_error.h"

#include <gtest/gtest.h>

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <numeric>

namespace kitchen {
namespace {

using testing::expect_near;
using testing::Expected;
using testing::kVariants;
using testing::multiply;
using testing::poisoned_context;
using testing::random_matrix;
using testing::same_bits;
using testing::throws;

using Splits = std::vector<std::int64_t>;

QuantizeSpec spec_of(const char* scheme) {
  return quantize_spec_from_scheme_name(scheme);
}

/// Schemes of x, of w and of dy, as recipes join them.
struct Schemes {
  const char* x;
  const char* w;
  const char* dy;
};
const std::vector<Schemes> kSchemes{{"tensor_e4m3", "tensor_e4m3", "tensor_e5m2"},
                                    {"row_e4m3", "row_e4m3", "row_e5m2"},
                                    {"b1x128_e4m3_pow2", "b128x128_e4m3_pow2", "b1x128_e5m2_pow2"},
                                    {"mxfp8_e4m3_row", "mxfp8_e4m3_row", "mxfp8_e5m2_row"},
                                    {"nvfp4_row", "nvfp4_2d", "nvfp4_row"}};

struct Layer {
  Tensor x, dy;
  std::vector<Tensor> weights;
};

Layer random_layer(const ContextPtr& context, const Splits& splits, std::int64_t k,
                   std::int64_t n) {
  const std::int64_t rows = std::accumulate(splits.begin(), splits.end(), std::int64_t{0});
  Layer layer{random_matrix(context, {rows, k}, 1), random_matrix(context, {rows, n}, 2), {}};
  for (std::uint32_t g = 0; g < splits.size(); ++g) {
    layer.weights.push_back(random_matrix(context, {n, k}, 10 + g));
  }
  return layer;
}

ops::QuantizedGroups quantize_weights(const Layer& layer, const char* scheme, bool columnwise) {
  ops::QuantizedGroups result;
  for (const Tensor& w : layer.weights) {
    result.push_back(ops::quantize(columnwise ? w.transpose(0, 1) : w, spec_of(scheme)));
  }
  return result;
}

void expect_products(const ops::QuantizedGroups& a, const ops::QuantizedGroups& b,
                     const std::vector<Tensor>& actual) {
  for (std::size_t g = 0; g < a.size(); ++g) {
    expect_near(multiply(a[g], b[g]), actual[g], a[g].codes.dim(1));
  }
}

/// fprop, dgrad and wgrad of every scheme and variant against fp64 sums, group by group.
void expect_layer(const ContextPtr& context, const Splits& splits, std::int64_t k, std::int64_t n,
                  const std::vector<std::string>& variants = kVariants) {
  const Layer layer = random_layer(context, splits, k, n);
  for (const Schemes& s : kSchemes) {
    const auto x = ops::quantize_groups(layer.x, splits, spec_of(s.x));
    const auto dy = ops::quantize_groups(layer.dy, splits, spec_of(s.dy));
    const auto w = quantize_weights(layer, s.w, false);
    const auto w_t = quantize_weights(layer, s.w, true);
    const auto x_t = ops::quantize_groups(layer.x, splits, spec_of(s.x), true);
    const auto dy_t = ops::quantize_groups(layer.dy, splits, spec_of(s.dy), true);
    for (const std::string& variant : variants) {
      SCOPED_TRACE(std::string(s.x) + " " + variant);
      const ops::GroupedGemmOptions options{1.0f, {}, variant};
      const Tensor y = ops::grouped_quantized_gemm(x, w, DType::float32, options);
      EXPECT_EQ(y.shape(), (Shape{layer.x.dim(0), n}));
      expect_products(x, w, ops::split_groups(y, splits));
      const Tensor dx = ops::grouped_quantized_gemm(dy, w_t, DType::float32, options);
      expect_products(dy, w_t, ops::split_groups(dx, splits));
      std::vector<Tensor> dw;
      for (std::size_t g = 0; g < splits.size(); ++g) {
        dw.push_back(Tensor::empty(context, {n, k}, DType::float32));
      }
      ops::grouped_quantized_gemm_into(dy_t, x_t, dw, false, options);
      expect_products(dy_t, x_t, dw);
    }
  }
}

// labels: ops.grouped_quantized_gemm G17
TEST(GroupedQuantizedGemm, EmptyGroupsGetZeroWeightGradients) {
  const ContextPtr context = poisoned_context();
  const Splits splits{5, 0, 3, 0};
  expect_layer(context, splits, 32, 64);
  const Layer layer = random_layer(context, splits, 32, 64);
  std::vector<Tensor> dw;
  for (int g = 0; g < 4; ++g) dw.push_back(Tensor::empty(context, {64, 32}, DType::bfloat16));
  const auto dy = ops::quantize_groups(layer.dy, splits, spec_of("tensor_e5m2"), true);
  const auto x = ops::quantize_groups(layer.x, splits, spec_of("tensor_e4m3"), true);
  ops::grouped_quantized_gemm_into(dy, x, dw, false);
  for (const std::size_t g : {1, 3}) {
    EXPECT_TRUE(same_bits(Tensor::zeros(context, {64, 32}, DType::bfloat16), dw[g]));
  }
  EXPECT_FALSE(same_bits(dw[1], dw[0]));
}

// labels: ops.grouped_quantized_gemm G19
TEST(GroupedQuantizedGemm, RaggedGroupsGoThroughAllThreeProducts) {
  expect_layer(poisoned_context(), {33, 1, 62, 0}, 128, 24);
}

// labels: ops.grouped_quantized_gemm G20
TEST(GroupedQuantizedGemm, GroupsShorterThanATileAreRight) {
  for (const std::int64_t m : {8, 16, 64}) {
    expect_layer(poisoned_context(), {m, m}, 256, 256, {"fast"});
  }
}

// labels: ops.grouped_quantized_gemm G21
TEST(GroupedQuantizedGemm, OneTokenForAWideExpertIsSoonDone) {
  const ContextPtr context = poisoned_context();
  const std::int64_t n = 24576;
  const Tensor x = random_matrix(context, {1, 1536}, 1);
  const Tensor tile = random_matrix(context, {128, 1536}, 2);
  const Tensor w = Tensor::empty(context, {n, 1536}, DType::bfloat16);
  for (std::int64_t row = 0; row < n; row += 128) {
    std::copy_n(tile.data<std::uint16_t>(), 128 * 1536, w.data<std::uint16_t>() + row * 1536);
  }
  const auto start = std::chrono::steady_clock::now();
  const auto a = ops::quantize_groups(x, {1}, spec_of("b1x128_e4m3_pow2"));
  const ops::QuantizedGroups b{ops::quantize(w, spec_of("b128x128_e4m3_pow2"))};
  const Tensor y = ops::grouped_quantized_gemm(a, b, DType::float32);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 5.0);
  const QuantizedMatrix last = ops::quantize(tile, spec_of("b128x128_e4m3_pow2"));
  expect_near(multiply(a[0], last), y.slice(1, n - 128, 128), 1536);
}

// labels: ops.quantize_groups G19
TEST(GroupedQuantizedGemm, AGroupDoesNotSeeTheOthers) {
  const ContextPtr context = poisoned_context();
  const Splits splits{3, 0, 4};
  const Layer layer = random_layer(context, splits, 40, 16);
  for (const Schemes& s : kSchemes) {
    const auto w = quantize_weights(layer, s.w, false);
    const auto product = [&] {
      const auto x = ops::quantize_groups(layer.x, splits, spec_of(s.x));
      return ops::split_groups(ops::grouped_quantized_gemm(x, w, DType::bfloat16), splits);
    };
    const Tensor before = product()[2];
    for (std::int64_t i = 0; i < 3 * 40; ++i) layer.x.data<std::uint16_t>()[i] ^= 0x4080u;
    EXPECT_TRUE(same_bits(before, product()[2])) << s.x;
  }
}

// labels: ops.grouped_quantized_gemm
TEST(GroupedQuantizedGemm, EqualsSingleProductsForAnyNumberOfThreads) {
  const ContextPtr context = poisoned_context();
  // One group is large enough to run on all threads, the others share them.
  const Splits splits{700, 0, 17, 130, 129, 64, 127, 3, 90, 100, 110, 120};
  const Layer layer = random_layer(context, splits, 320, 320);
  const auto x = ops::quantize_groups(layer.x, splits, spec_of("mxfp8_e4m3_row"));
  const auto w = quantize_weights(layer, "mxfp8_e4m3_row", false);
  ops::GroupedGemmOptions options;
  for (std::uint32_t g = 0; g < splits.size(); ++g) {
    options.biases.push_back(random_matrix(context, {320}, 30 + g));
  }
  const int former = omp_get_max_threads();
  for (const int threads : {1, 2, 3}) {
    omp_set_num_threads(threads);
    const Tensor y = ops::grouped_quantized_gemm(x, w, DType::bfloat16, options);
    const std::vector<Tensor> groups = ops::split_groups(y, splits);
    omp_set_num_threads(1);
    for (std::size_t g = 0; g < splits.size(); ++g) {
      const Tensor one =
          ops::quantized_gemm(x[g], w[g], DType::bfloat16, {1.0f, options.biases[g], ""});
      EXPECT_TRUE(same_bits(one, groups[g])) << threads << " " << g;
    }
  }
  omp_set_num_threads(former);
}

// labels: ops.grouped_quantized_gemm G17
TEST(GroupedQuantizedGemm, MainGradKeepsItsValueForAnEmptyGroup) {
  const ContextPtr context = poisoned_context();
  const Splits splits{0, 9};
  const Layer layer = random_layer(context, splits, 24, 8);
  for (const Schemes& s : kSchemes) {
    const auto dy = ops::quantize_groups(layer.dy, splits, spec_of(s.dy), true);
    const auto x = ops::quantize_groups(layer.x, splits, spec_of(s.x), true);
    const auto filled = [&] {
      return Tensor::from_vector(context, {8, 24}, std::vector<float>(192, 2.5f));
    };
    const std::vector<Tensor> main_grads{filled(), filled()};
    ops::grouped_quantized_gemm_into(dy, x, main_grads, true);
    EXPECT_TRUE(same_bits(filled(), main_grads[0])) << s.x;
    const Tensor expected = filled();
    ops::quantized_gemm_into(dy[1], x[1], expected, true);
    EXPECT_TRUE(same_bits(expected, main_grads[1])) << s.x;
  }
}

// labels: ops.grouped_gemm G17
TEST(GroupedGemm, HighPrecisionGroupsEqualSingleProducts) {
  const ContextPtr context = poisoned_context();
  const Splits splits{5, 0, 3, 0};
  const Layer layer = random_layer(context, splits, 32, 64);
  const std::vector<Tensor> ys =
      ops::split_groups(ops::grouped_gemm(layer.x, splits, layer.weights, DType::bfloat16), splits);
  const std::vector<Tensor> xs = ops::split_groups(layer.x, splits);
  std::vector<Tensor> dw;
  for (std::size_t g = 0; g < 4; ++g) {
    EXPECT_TRUE(same_bits(ops::gemm(xs[g], layer.weights[g], DType::bfloat16), ys[g]));
    dw.push_back(Tensor::empty(context, {64, 32}, DType::float32));
  }
  ops::grouped_gemm_wgrad_into(layer.dy, layer.x, splits, dw, false);
  EXPECT_TRUE(same_bits(Tensor::zeros(context, {64, 32}, DType::float32), dw[1]));
  const Tensor dy = ops::split_groups(layer.dy, splits)[2];
  EXPECT_TRUE(
      same_bits(ops::gemm(dy.transpose(0, 1), xs[2].transpose(0, 1), DType::float32), dw[2]));
}

// labels: ops.quantize_groups
TEST(GroupedGemm, EachGroupRoundsWithItsOwnStream) {
  const ContextPtr context = poisoned_context();
  const Tensor half = random_matrix(context, {4, 64}, 1);
  const Tensor x = Tensor::empty(context, {8, 64}, DType::bfloat16);
  for (std::int64_t i = 0; i < 512; ++i) {
    x.data<std::uint16_t>()[i] = half.data<std::uint16_t>()[i % 256];
  }
  std::vector<ops::QuantizeCall> calls(2);
  calls[1].rounding.seed = 99;
  const auto groups = ops::quantize_groups(x, {4, 4}, spec_of("nvfp4_row_sr"), false, calls);
  EXPECT_FALSE(same_bits(groups[0].codes, groups[1].codes));
  const auto same = ops::quantize_groups(x, {4, 4}, spec_of("nvfp4_row_sr"));
  EXPECT_TRUE(same_bits(same[0].codes, same[1].codes));
}

// labels: ops.grouped_gemm ops.grouped_quantized_gemm
TEST(GroupedGemm, WrongSplitsAndListsAreRefused) {
  const ContextPtr context = poisoned_context();
  const Layer layer = random_layer(context, {3, 5}, 32, 16);
  EXPECT_TRUE(throws<ValueError>(
      [&] {
        (void)ops::split_groups(layer.x, {9, -1});
      },
      {"[9, -1]", "negative"}));
  EXPECT_TRUE(throws<ValueError>(
      [&] {
        (void)ops::split_groups(layer.x, {3, 4});
      },
      {"[3, 4]", "sum to 7", "8 rows"}));
  EXPECT_TRUE(throws<ValueError>(
      [&] {
        (void)ops::split_groups(layer.x.view({2, 4, 32}), {8});
      },
      {"[2, 4, 32]"}));
  EXPECT_TRUE(throws<ValueError>(
      [&] {
        (void)ops::grouped_gemm(layer.x, {3, 4, 1}, layer.weights, DType::float32);
      },
      {"2 weights for 3 groups"}));
  const auto x = ops::quantize_groups(layer.x, {3, 5}, spec_of("tensor_e4m3"));
  auto w = quantize_weights(layer, "tensor_e4m3", false);
  EXPECT_TRUE(throws<ValueError>([&] { (void)ops::grouped_quantized_gemm({}, {}, DType::float32); },
                                 {"no groups"}));
  EXPECT_TRUE(throws<ValueError>([&] { ops::grouped_quantized_gemm_into(x, w, {layer.dy}, false); },
                                 {"1 outs for 2 groups"}));
  EXPECT_TRUE(throws<ValueError>(
      [&] {
        (void)ops::quantize_groups(layer.x, {3, 5}, spec_of("tensor_e4m3"), false,
                                   std::vector<ops::QuantizeCall>(3));
      },
      {"3 calls for 2 groups"}));
  w[1] = ops::quantize(random_matrix(context, {17, 32}, 5), spec_of("tensor_e4m3"));
  EXPECT_TRUE(throws<ValueError>([&] { (void)ops::grouped_quantized_gemm(x, w, DType::float32); },
                                 {"[16, 17]"}));
}

// labels: ops.grouped_quantized_gemm base.Context
TEST(GroupedGemm, TheMetaDeviceCountsOneWorkspaceAThread) {
  const ContextPtr meta = make_meta_context(*reference::make_cpu_context());
  const Tensor x = Tensor::empty(meta, {64, 64}, DType::bfloat16);
  const Tensor w = Tensor::empty(meta, {32, 64}, DType::bfloat16);
  const auto a = ops::quantize_groups(x, {64, 0}, spec_of("tensor_e4m3"));
  const ops::QuantizedGroups b(2, ops::quantize(w, spec_of("tensor_e4m3")));
  const std::int64_t live = meta->allocator()->stats().live_bytes;
  meta->allocator()->reset_peak();
  const Tensor y = ops::grouped_quantized_gemm(a, b, DType::bfloat16);
  const std::int64_t largest = 4 * (64 * 64 + 32 * 64 + 64 * 32);
  EXPECT_EQ(meta->allocator()->stats().peak_bytes - live,
            std::min(2, omp_get_max_threads()) * largest + y.nbytes());
}

}  // namespace
}  // namespace kitchen
