#include "kitchen/ops/norm.h"

#include "kitchen/base/error.h"
#include "ops_b/test_tensors.h"
#include "support/gradcheck.h"

#include <gtest/gtest.h>

namespace kitchen::testing {
namespace {

using Values = std::vector<double>;

/// fp64 layer or RMS norm of `rows` rows.
Values oracle_forward(const Values& x, const Values& gamma, const Values& beta,
                      const ops::NormOptions& options) {
  const std::size_t cols = gamma.size();
  const bool is_layer = options.kind == ops::NormKind::layer_norm;
  Values y(x.size());
  for (std::size_t start = 0; start < x.size(); start += cols) {
    double mean = 0.0;
    for (std::size_t c = 0; c < cols && is_layer; ++c) mean += x[start + c];
    mean /= static_cast<double>(cols);
    double squares = 0.0;
    for (std::size_t c = 0; c < cols; ++c) squares += std::pow(x[start + c] - mean, 2);
    const double rstd = 1.0 / std::sqrt(squares / static_cast<double>(cols) + options.eps);
    for (std::size_t c = 0; c < cols; ++c) {
      const double gain = gamma[c] + (options.zero_centered_gamma ? 1.0 : 0.0);
      y[start + c] = (x[start + c] - mean) * rstd * gain + (is_layer ? beta[c] : 0.0);
    }
  }
  return y;
}

struct Case {
  std::int64_t rows;
  std::int64_t cols;
  DType dtype;
  DType parameter_dtype;
  ops::NormOptions options;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto& [rows, cols] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {1, 1}, {3, 7}, {5, 8}, {2, 9}, {1, 97}, {129, 64}, {257, 31}}) {
    for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
      for (const ops::NormKind kind : {ops::NormKind::layer_norm, ops::NormKind::rms_norm}) {
        for (const bool zero_centered : {false, true}) {
          const DType parameters = zero_centered ? DType::float32 : dtype;
          cases.push_back({rows, cols, dtype, parameters, {kind, 1e-5f, zero_centered}});
        }
      }
    }
  }
  return cases;
}

struct Operands {
  Tensor x, gamma, beta, dy;
};

Operands operands_of(const ContextPtr& context, const Case& c) {
  Operands o;
  o.x = normal_tensor(context, {c.rows, c.cols}, c.dtype, 1);
  o.gamma = normal_tensor(context, {c.cols}, c.parameter_dtype, 2);
  o.beta = normal_tensor(context, {c.cols}, c.parameter_dtype, 3);
  o.dy = normal_tensor(context, {c.rows, c.cols}, c.dtype, 4);
  return o;
}

Tensor beta_or_none(const Operands& o, const Case& c) {
  return c.options.kind == ops::NormKind::layer_norm ? o.beta : Tensor();
}

// labels: ops.norm
TEST(Norm, ForwardEqualsFp64) {
  for (const Case& c : all_cases()) {
    const ContextPtr context = poisoned_context();
    const Operands o = operands_of(context, c);
    const ops::NormResult result = ops::norm_forward(o.x, o.gamma, beta_or_none(o, c), c.options);
    const Values want =
        oracle_forward(values_of(o.x), values_of(o.gamma), values_of(o.beta), c.options);
    // Sums of n terms in 8 lanes lose at most (n / 8 + 3) units, the arithmetic around them about 8
    // more, relative to |x̂·g| + |beta| <= 16 here; then one rounding to the dtype.
    const double units = static_cast<double>(c.cols) / 8 + 12;
    EXPECT_TRUE(close(want, values_of(result.y), units * 16 * kUnit32, unit_of(c.dtype)))
        << c.rows << "x" << c.cols << " " << to_string(c.dtype);
    EXPECT_EQ(result.y.dtype(), c.dtype);
    EXPECT_EQ(result.mean.defined(), c.options.kind == ops::NormKind::layer_norm);
  }
}

// labels: ops.norm
TEST(Norm, BackwardEqualsDifferencesOfTheOracle) {
  for (const ops::NormKind kind : {ops::NormKind::layer_norm, ops::NormKind::rms_norm}) {
    for (const bool zero_centered : {false, true}) {
      const Case c{5, 9, DType::float32, DType::float32, {kind, 1e-3f, zero_centered}};
      const ContextPtr context = poisoned_context();
      const Operands o = operands_of(context, c);
      const ops::NormResult result = ops::norm_forward(o.x, o.gamma, beta_or_none(o, c), c.options);
      const ops::NormGradients gradients =
          ops::norm_backward(o.dy, o.x, o.gamma, result.mean, result.rstd, c.options);
      const Values dy = values_of(o.dy);
      const auto loss = [&](const std::vector<Values>& in) {
        const Values y = oracle_forward(in[0], in[1], in[2], c.options);
        double sum = 0.0;
        for (std::size_t i = 0; i < y.size(); ++i) sum += dy[i] * y[i];
        return sum;
      };
      const Values dbeta = gradients.dbeta.defined() ? values_of(gradients.dbeta) : Values();
      EXPECT_EQ(gradients.dbeta.defined(), kind == ops::NormKind::layer_norm);
      // About 20 fp32 roundings of terms below 10.
      EXPECT_TRUE(gradients_match(loss, {values_of(o.x), values_of(o.gamma), values_of(o.beta)},
                                  {values_of(gradients.dx), values_of(gradients.dgamma), dbeta},
                                  1e-5, 1e-5));
    }
  }
}

// labels: ops.norm
TEST(Norm, ParameterGradientsSumOverAllRowsIncludingRaggedChunks) {
  for (const std::int64_t rows : {1, 127, 128, 129, 300}) {
    const Case c{rows, 11, DType::bfloat16, DType::float32, {}};
    const ContextPtr context = poisoned_context();
    const Operands o = operands_of(context, c);
    const ops::NormResult result = ops::norm_forward(o.x, o.gamma, o.beta, c.options);
    const ops::NormGradients gradients =
        ops::norm_backward(o.dy, o.x, o.gamma, result.mean, result.rstd, c.options);
    const Values dy = values_of(o.dy);
    const Values unit_gamma(11, 1.0);
    const Values xhat = oracle_forward(values_of(o.x), unit_gamma, Values(11, 0.0), c.options);
    Values dgamma(11, 0.0);
    Values dbeta(11, 0.0);
    for (std::size_t i = 0; i < dy.size(); ++i) {
      dgamma[i % 11] += dy[i] * xhat[i];
      dbeta[i % 11] += dy[i];
    }
    // Chunks of 128 terms below 16 and 3 chunk sums: 131 units of at most 300·16.
    EXPECT_TRUE(close(dgamma, values_of(gradients.dgamma), 131 * 4800 * kUnit32, 0.0));
    EXPECT_TRUE(close(dbeta, values_of(gradients.dbeta), 131 * 4800 * kUnit32, 0.0));
    EXPECT_EQ(gradients.dx.dtype(), DType::bfloat16);
  }
}

// labels: ops.norm N23
TEST(Norm, OutputIsRoundedOnceToBfloat16) {
  const ContextPtr context = poisoned_context();
  // x̂ = ±1 (eps 0), so y is gamma itself: 1.0039064 lies above the middle of 1 and 1.0078125.
  const Tensor x = tensor_of(context, {1, 2}, {1.0, -1.0}, DType::bfloat16);
  const Tensor gamma = tensor_of(context, {2}, {1.0039064, 1.0039064}, DType::float32);
  const Tensor beta = tensor_of(context, {2}, {0.0, 0.0}, DType::float32);
  const ops::NormResult result =
      ops::norm_forward(x, gamma, beta, {ops::NormKind::layer_norm, 0.0f, false});
  EXPECT_EQ(values_of(result.y), (Values{1.0078125, -1.0078125}));
}

// labels: ops.norm G13
TEST(Norm, PermutedStridesGiveTheNumbersOfTheContiguousCopy) {
  const ContextPtr context = poisoned_context();
  const Tensor base = normal_tensor(context, {4, 4, 4, 4}, DType::float32, 7);
  const Tensor gamma = normal_tensor(context, {4}, DType::float32, 8);
  const Tensor beta = normal_tensor(context, {4}, DType::float32, 9);
  for (const std::vector<int>& order :
       std::vector<std::vector<int>>{{3, 2, 1, 0}, {1, 0, 2, 3}, {0, 2, 3, 1}}) {
    const Tensor x = base.permute(order);
    const Tensor copy = tensor_of(context, x.shape(), values_of(x), DType::float32);
    const ops::NormResult want = ops::norm_forward(copy, gamma, beta, {});
    const ops::NormResult got = ops::norm_forward(x, gamma, beta, {});
    EXPECT_TRUE(same_bits(want.y, got.y));
    const Tensor dy = base.permute({0, 1, 3, 2});
    const Tensor dy_copy = tensor_of(context, dy.shape(), values_of(dy), DType::float32);
    EXPECT_TRUE(same_bits(ops::norm_backward(dy_copy, copy, gamma, want.mean, want.rstd, {}).dx,
                          ops::norm_backward(dy, x, gamma, got.mean, got.rstd, {}).dx));
  }
}

// labels: ops.norm
TEST(Norm, RowsWithGapsAndMisalignedStartsAreRead) {
  const ContextPtr context = poisoned_context();
  const Tensor wide = normal_tensor(context, {6, 21}, DType::bfloat16, 7);
  const Tensor x = wide.slice(1, 1, 17);
  const Tensor gamma = normal_tensor(context, {17}, DType::bfloat16, 8);
  const Tensor copy = tensor_of(context, {6, 17}, values_of(x), DType::bfloat16);
  const ops::NormOptions rms{ops::NormKind::rms_norm, 1e-6f, false};
  EXPECT_TRUE(same_bits(ops::norm_forward(copy, gamma, Tensor(), rms).y,
                        ops::norm_forward(x, gamma, Tensor(), rms).y));
}

// labels: ops.norm R06
TEST(Norm, RowOffsetsBeyondTwoToThe31AreRead) {
  const ContextPtr context = reference::make_cpu_context();
  const std::int64_t stride = std::int64_t{1} << 31;
  // 4 GiB of address space of which the two rows alone become pages.
  const Tensor buffer = Tensor::empty(context, {stride + 512}, DType::float16);
  const Tensor x = buffer.as_strided({2, 512}, {stride, 1}, 0);
  const Tensor want_x = normal_tensor(context, {2, 512}, DType::float16, 5);
  const auto* from = want_x.data<std::uint16_t>();
  for (std::int64_t r = 0; r < 2; ++r) {
    for (std::int64_t c = 0; c < 512; ++c) {
      buffer.data<std::uint16_t>()[r * stride + c] = from[r * 512 + c];
    }
  }
  const Tensor gamma = normal_tensor(context, {512}, DType::float16, 6);
  const ops::NormOptions rms{ops::NormKind::rms_norm, 1e-5f, false};
  const ops::NormResult want = ops::norm_forward(want_x, gamma, Tensor(), rms);
  const ops::NormResult got = ops::norm_forward(x, gamma, Tensor(), rms);
  EXPECT_TRUE(same_bits(want.y, got.y));
  EXPECT_TRUE(same_bits(ops::norm_backward(want_x, want_x, gamma, Tensor(), want.rstd, rms).dx,
                        ops::norm_backward(x, x, gamma, Tensor(), got.rstd, rms).dx));
}

// labels: ops.norm
TEST(Norm, ResultsDoNotDependOnTheNumberOfThreads) {
  const ContextPtr context = poisoned_context();
  const Case c{700, 64, DType::bfloat16, DType::float32, {}};
  const Operands o = operands_of(context, c);
  ops::NormResult first;
  ops::NormGradients first_gradients;
  with_one_and_two_threads([&](int threads) {
    const ops::NormResult result = ops::norm_forward(o.x, o.gamma, o.beta, {});
    const ops::NormGradients gradients =
        ops::norm_backward(o.dy, o.x, o.gamma, result.mean, result.rstd, {});
    if (threads == 1) {
      first = result;
      first_gradients = gradients;
    }
    EXPECT_TRUE(same_bits(first.y, result.y));
    EXPECT_TRUE(same_bits(first_gradients.dx, gradients.dx));
    EXPECT_TRUE(same_bits(first_gradients.dgamma, gradients.dgamma));
    EXPECT_TRUE(same_bits(first_gradients.dbeta, gradients.dbeta));
  });
}

// labels: ops.norm
TEST(Norm, NoRowsGiveEmptyOutputAndZeroParameterGradients) {
  const ContextPtr context = poisoned_context();
  const Case c{0, 6, DType::bfloat16, DType::float32, {}};
  const Operands o = operands_of(context, c);
  const ops::NormResult result = ops::norm_forward(o.x, o.gamma, o.beta, {});
  EXPECT_EQ(result.y.shape(), (Shape{0, 6}));
  const ops::NormGradients gradients =
      ops::norm_backward(o.dy, o.x, o.gamma, result.mean, result.rstd, {});
  EXPECT_EQ(values_of(gradients.dgamma), Values(6, 0.0));
  EXPECT_EQ(values_of(gradients.dbeta), Values(6, 0.0));
}

// labels: ops.norm
TEST(Norm, NaNStaysInItsRow) {
  const ContextPtr context = poisoned_context();
  Values x = normals(3 * 8, 1);
  x[9] = kNaN;
  const Values ones(8, 1.0);
  const Tensor y = ops::norm_forward(tensor_of(context, {3, 8}, x, DType::float32),
                                     tensor_of(context, {8}, ones, DType::float32),
                                     tensor_of(context, {8}, ones, DType::float32), {})
                       .y;
  const Values values = values_of(y);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(std::isnan(values[i]), i / 8 == 1);
}

// labels: ops.norm
TEST(Norm, RunsOnTheMetaDevice) {
  const ContextPtr meta = make_meta_context(*reference::make_cpu_context());
  const Tensor x = Tensor::empty(meta, {1 << 20, 3, 512}, DType::bfloat16);
  const Tensor parameter = Tensor::empty(meta, {512}, DType::float32);
  const ops::NormResult result = ops::norm_forward(x, parameter, parameter, {});
  EXPECT_EQ(result.y.shape(), x.shape());
  EXPECT_EQ(ops::norm_backward(x, x, parameter, result.mean, result.rstd, {}).dx.shape(),
            x.shape());
}

// labels: ops.norm
TEST(Norm, BadOperandsAreRefused) {
  const ContextPtr context = poisoned_context();
  const Tensor x = normal_tensor(context, {2, 8}, DType::float32, 1);
  const Tensor eight = normal_tensor(context, {8}, DType::float32, 1);
  const Tensor seven = normal_tensor(context, {7}, DType::float32, 1);
  const Tensor integers = Tensor::zeros(context, {2, 8}, DType::int32);
  const ops::NormOptions rms{ops::NormKind::rms_norm, 1e-5f, false};
  EXPECT_THROW((void)ops::norm_forward(x, seven, eight, {}), ValueError);
  EXPECT_THROW((void)ops::norm_forward(x, eight, seven, {}), ValueError);
  EXPECT_THROW((void)ops::norm_forward(x, eight, Tensor(), {}), ValueError);
  EXPECT_THROW((void)ops::norm_forward(x, eight, eight, rms), ValueError);
  EXPECT_THROW((void)ops::norm_forward(integers, eight, eight, {}), TypeError);
  EXPECT_THROW(
      (void)ops::norm_forward(Tensor::zeros(context, {2, 0}, DType::float32), eight, eight, {}),
      ValueError);
  EXPECT_THROW((void)ops::norm_backward(x.slice(0, 0, 1), x, eight, eight, eight, {}), ValueError);
  try {
    (void)ops::norm_forward(x, seven, eight, {});
  } catch (const ValueError& error) {
    EXPECT_STREQ(error.what(), "norm_forward: gamma has shape [7]; expected [8]");
  }
}

}  // namespace
}  // namespace kitchen::testing
