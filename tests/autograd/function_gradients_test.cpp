#include "kitchen/autograd/backward.h"
#include "kitchen/autograd/math_functions.h"
#include "kitchen/autograd/nn_functions.h"
#include "kitchen/autograd/view_functions.h"
#include "kitchen/base/error.h"
#include "ops_b/attention_oracle.h"
#include "support/compare.h"
#include "support/expect_error.h"
#include "support/gradcheck.h"
#include "support/rank_test.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace kitchen {
namespace {

using testing::close;
using testing::same_bits;
using testing::throws;
using testing::values_of;

using Values = std::vector<double>;
using Inputs = std::vector<Values>;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

class FunctionGradients : public testing::RankTest {
 protected:
  using Apply = std::function<Tensor(const std::vector<Tensor>&)>;
  using Oracle = std::function<Values(const Inputs&)>;

  /// y against the oracle, and d Σ dy·y / d inputs against central differences of the oracle.
  /// Values are of order one and sums have at most ~40 terms: fp32 errs below 40·2^-24·8 < 2e-5.
  void check(const Apply& apply, const Oracle& oracle, const std::vector<Shape>& shapes,
             double tolerance = 2e-5) const {
    std::vector<Tensor> leaves;
    Inputs inputs;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      leaves.push_back(leaf(shapes[i], 10 + i));
      inputs.push_back(values_of(leaves.back().detach()));
    }
    const Tensor y = apply(leaves);
    EXPECT_TRUE(close(oracle(inputs), values_of(y.detach()), tolerance, tolerance));
    const Tensor dy = tensor(y.shape(), 99);
    const Values weights = values_of(dy);
    autograd::backward(y, dy);
    Inputs analytic;
    for (const Tensor& one : leaves) analytic.push_back(values_of(autograd::grad_of(one)));
    const auto weighted = [&](const Inputs& in) {
      const Values out = oracle(in);
      double sum = 0.0;
      for (std::size_t i = 0; i < out.size(); ++i) sum += weights[i] * out[i];
      return sum;
    };
    EXPECT_TRUE(testing::gradients_match(weighted, inputs, analytic, tolerance, tolerance));
  }
};

/// Applies f to each pair.
Values zip(const Values& a, const Values& b, const std::function<double(double, double)>& f) {
  Values out;
  for (std::size_t i = 0; i < a.size(); ++i) out.push_back(f(a[i], b[i % b.size()]));
  return out;
}

// labels: autograd.add autograd.multiply autograd.scale autograd.add_bias autograd.sum
TEST_F(FunctionGradients, Elementwise) {
  check([](auto& in) { return autograd::add(in[0], in[1]); },
        [](const Inputs& in) { return zip(in[0], in[1], std::plus<>()); }, {{3, 5}, {3, 5}});
  check([](auto& in) { return autograd::multiply(in[0], in[1]); },
        [](const Inputs& in) { return zip(in[0], in[1], std::multiplies<>()); }, {{3, 5}, {3, 5}});
  check([](auto& in) { return autograd::scale(in[0], -1.5f); },
        [](const Inputs& in) { return zip(in[0], {-1.5}, std::multiplies<>()); }, {{7}});
  check([](auto& in) { return autograd::add_bias(in[0], in[1]); },
        [](const Inputs& in) { return zip(in[0], in[1], std::plus<>()); }, {{2, 3, 5}, {5}});
  check([](auto& in) { return autograd::sum(in[0]); },
        [](const Inputs& in) {
          double sum = 0.0;
          for (const double value : in[0]) sum += value;
          return Values{sum};
        },
        {{2, 3, 5}});
}

// labels: autograd.cast
TEST_F(FunctionGradients, CastConvertsTheGradientBack) {
  const Tensor x = leaf({4}, 1, DType::bfloat16);
  const Tensor y = autograd::cast(x, DType::float32);
  EXPECT_EQ(y.dtype(), DType::float32);
  autograd::backward(y, tensor({4}, 2));
  EXPECT_TRUE(same_bits(tensor({4}, 2, DType::bfloat16), autograd::grad_of(x)));
  EXPECT_EQ(autograd::cast(x, DType::bfloat16).id(), x.id());
}

// labels: autograd.add autograd.bias_dropout_add
TEST_F(FunctionGradients, EachInputGetsItsOwnDtype) {
  const Tensor a = leaf({2, 3}, 1, DType::bfloat16);
  const Tensor b = leaf({2, 3}, 2);
  autograd::backward(autograd::sum(autograd::add(a, b)));
  EXPECT_EQ(autograd::grad_of(a).dtype(), DType::bfloat16);
  EXPECT_EQ(autograd::grad_of(b).dtype(), DType::float32);
  const Tensor bias = leaf({3}, 3, DType::bfloat16);
  const Tensor residual = leaf({2, 3}, 4);
  const Tensor x = leaf({2, 3}, 5, DType::bfloat16);
  autograd::backward(autograd::sum(autograd::bias_dropout_add(x, bias, residual, 0.0f, {})));
  EXPECT_EQ(autograd::grad_of(x).dtype(), DType::bfloat16);
  EXPECT_EQ(autograd::grad_of(bias).dtype(), DType::bfloat16);
  EXPECT_EQ(autograd::grad_of(residual).dtype(), DType::float32);
}

Values matmul_oracle(const Inputs& in, std::int64_t batch, std::int64_t m, std::int64_t n,
                     std::int64_t k, double alpha) {
  Values out;
  for (std::int64_t s = 0; s < batch; ++s) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0.0;
        for (std::int64_t c = 0; c < k; ++c) {
          sum += in[0][at((s * m + i) * k + c)] * in[1][at((s * n + j) * k + c)];
        }
        out.push_back(alpha * sum);
      }
    }
  }
  return out;
}

// labels: autograd.matmul_nt
TEST_F(FunctionGradients, MatrixProduct) {
  check([](auto& in) { return autograd::matmul_nt(in[0], in[1], 0.5f); },
        [](const Inputs& in) { return matmul_oracle(in, 2, 3, 4, 5, 0.5); }, {{2, 3, 5}, {2, 4, 5}});
  check([](auto& in) { return autograd::matmul_nt(in[0], in[1]); },
        [](const Inputs& in) { return matmul_oracle(in, 1, 1, 1, 7, 1.0); }, {{1, 7}, {1, 7}});
}

// labels: autograd.matmul_nt autograd.permute G13
TEST_F(FunctionGradients, MatrixProductTakesAGradientOfAnyStrides) {
  check(
      [](auto& in) {
        return autograd::contiguous(
            autograd::permute(autograd::matmul_nt(in[0], in[1]), {1, 2, 0}));
      },
      [](const Inputs& in) {
        const Values y = matmul_oracle(in, 2, 3, 4, 5, 1.0);
        Values out;
        for (std::int64_t i = 0; i < 12; ++i) {
          for (std::int64_t s = 0; s < 2; ++s) out.push_back(y[at(s * 12 + i)]);
        }
        return out;
      },
      {{2, 3, 5}, {2, 4, 5}});
}

// labels: autograd.reshape autograd.transpose autograd.permute autograd.contiguous
TEST_F(FunctionGradients, Views) {
  const auto same = [](const Inputs& in) { return in[0]; };
  const auto transposed = [](const Inputs& in) {
    Values out;
    for (std::int64_t c = 0; c < 5; ++c) {
      for (std::int64_t r = 0; r < 3; ++r) out.push_back(in[0][at(r * 5 + c)]);
    }
    return out;
  };
  check([](auto& in) { return autograd::reshape(in[0], {5, -1}); }, same, {{3, 5}});
  check([](auto& in) { return autograd::transpose(in[0], 0, -1); }, transposed, {{3, 5}});
  check([](auto& in) { return autograd::contiguous(autograd::permute(in[0], {1, 0})); }, transposed,
        {{3, 5}});
  // A reshape of a transposed tensor has to copy.
  check([](auto& in) { return autograd::reshape(autograd::transpose(in[0], 0, 1), {15}); },
        transposed, {{3, 5}});
  const Tensor x = leaf({3, 5}, 1);
  EXPECT_EQ(autograd::contiguous(x).id(), x.id());
  EXPECT_TRUE(autograd::reshape(x, {15}).shares_storage_with(x));
  EXPECT_TRUE(throws<ValueError>([&] { (void)autograd::reshape(x, {4, 4}); }, {"[4, 4]"}));
  EXPECT_TRUE(throws<ValueError>([&] { (void)autograd::transpose(x, 0, 2); }, {"2"}));
}

// labels: autograd.split autograd.repeat_interleave
TEST_F(FunctionGradients, SplitAndRepeat) {
  check(
      [](auto& in) {
        const std::vector<Tensor> parts = autograd::split(in[0], -1, {2, 3});
        return autograd::multiply(parts[0], autograd::split(parts[1], 1, {2, 1})[0]);
      },
      [](const Inputs& in) {
        Values out;
        for (std::int64_t r = 0; r < 3; ++r) {
          for (std::int64_t c = 0; c < 2; ++c) {
            out.push_back(in[0][at(r * 5 + c)] * in[0][at(r * 5 + 2 + c)]);
          }
        }
        return out;
      },
      {{3, 5}});
  check([](auto& in) { return autograd::repeat_interleave(in[0], 1, 3); },
        [](const Inputs& in) {
          Values out;
          for (std::int64_t i = 0; i < 2; ++i) {
            for (std::int64_t j = 0; j < 6; ++j) {  // h0 h0 h0 h1 h1 h1, not tiled
              for (std::int64_t c = 0; c < 4; ++c) out.push_back(in[0][at((i * 2 + j / 3) * 4 + c)]);
            }
          }
          return out;
        },
        {{2, 2, 4}});
  const Tensor x = leaf({2, 3}, 1);
  EXPECT_TRUE(throws<ValueError>([&] { (void)autograd::split(x, 1, {1, 1}); }, {"2", "[2, 3]"}));
  EXPECT_TRUE(throws<ValueError>([&] { (void)autograd::repeat_interleave(x, 0, 0); }, {"0"}));
  EXPECT_TRUE(throws<ValueError>([&] { (void)autograd::repeat_interleave(x, 2, 2); }, {"2"}));
}

// labels: autograd.concatenate
TEST_F(FunctionGradients, Concatenate) {
  check(
      [](auto& in) {
        const Tensor joined = autograd::concatenate({in[0], in[1], in[0]}, -1);
        return autograd::multiply(joined, joined);
      },
      [](const Inputs& in) {
        Values out;
        for (std::int64_t r = 0; r < 2; ++r) {
          for (const std::int64_t piece : {0, 1, 0}) {
            const std::int64_t cols = piece == 0 ? 3 : 1;
            for (std::int64_t c = 0; c < cols; ++c) {
              out.push_back(std::pow(in[at(piece)][at(r * cols + c)], 2));
            }
          }
        }
        return out;
      },
      {{2, 3}, {2, 1}});
  EXPECT_TRUE(throws<ValueError>([] { (void)autograd::concatenate({}, 0); }, {"no pieces"}));
}

Values norm_oracle(const Inputs& in, std::int64_t cols, bool rms, bool zero_centered, double eps) {
  Values out;
  for (std::size_t row = 0; row < in[0].size(); row += at(cols)) {
    double mean = 0.0;
    double square = 0.0;
    for (std::int64_t c = 0; c < cols && !rms; ++c) mean += in[0][row + at(c)] / double(cols);
    for (std::int64_t c = 0; c < cols; ++c) {
      square += std::pow(in[0][row + at(c)] - mean, 2) / double(cols);
    }
    for (std::int64_t c = 0; c < cols; ++c) {
      const double gamma = in[1][at(c)] + (zero_centered ? 1.0 : 0.0);
      out.push_back((in[0][row + at(c)] - mean) / std::sqrt(square + eps) * gamma +
                    (rms ? 0.0 : in[2][at(c)]));
    }
  }
  return out;
}

// labels: autograd.norm
TEST_F(FunctionGradients, Norms) {
  for (const bool zero_centered : {false, true}) {
    ops::NormOptions layer{ops::NormKind::layer_norm, 0.01f, zero_centered};
    check([&](auto& in) { return autograd::norm(in[0], in[1], in[2], layer); },
          [&](const Inputs& in) { return norm_oracle(in, 6, false, zero_centered, 0.01f); },
          {{2, 3, 6}, {6}, {6}}, 1e-4);  // 1/σ of up to 10 amplifies
    ops::NormOptions rms{ops::NormKind::rms_norm, 0.01f, zero_centered};
    check([&](auto& in) { return autograd::norm(in[0], in[1], {}, rms); },
          [&](const Inputs& in) { return norm_oracle(in, 6, true, zero_centered, 0.01f); },
          {{2, 3, 6}, {6}}, 1e-4);
  }
}

double activation_oracle(ops::Activation kind, double x) {
  switch (kind) {
    case ops::Activation::gelu: return 0.5 * x * (1.0 + std::erf(x / std::sqrt(2.0)));
    case ops::Activation::gelu_tanh:
      return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
    case ops::Activation::silu: return x / (1.0 + std::exp(-x));
    case ops::Activation::relu: return x > 0.0 ? x : 0.0;
  }
  return NAN;
}

// labels: autograd.bias_activation
TEST_F(FunctionGradients, BiasAndActivation) {
  for (const auto kind : {ops::Activation::gelu, ops::Activation::gelu_tanh, ops::Activation::silu}) {
    const ops::ActivationOptions plain{kind, false, 0.0f};
    check([&](auto& in) { return autograd::bias_activation(in[0], in[1], plain); },
          [&](const Inputs& in) {
            return zip(in[0], in[1],
                       [&](double x, double b) { return activation_oracle(kind, x + b); });
          },
          {{3, 4}, {4}});
    const ops::ActivationOptions gated{kind, true, 0.25f};
    check([&](auto& in) { return autograd::bias_activation(in[0], {}, gated); },
          [&](const Inputs& in) {
            Values out;
            for (std::int64_t r = 0; r < 3; ++r) {
              for (std::int64_t c = 0; c < 2; ++c) {
                out.push_back(activation_oracle(kind, in[0][at(r * 4 + c)]) *
                              (in[0][at(r * 4 + 2 + c)] + 0.25));
              }
            }
            return out;
          },
          {{3, 4}});
  }
}

// labels: autograd.softmax
TEST_F(FunctionGradients, MaskedSoftmax) {
  ops::SoftmaxOptions options;
  options.scale = 3.0f;
  options.causal = true;
  check([&](auto& in) { return autograd::softmax(in[0], {}, options); },
        [&](const Inputs& in) {
          Values out;
          for (std::int64_t row = 0; row < 8; ++row) {
            double sum = 0.0;
            const std::int64_t seen = row % 4 + 1;
            for (std::int64_t c = 0; c < seen; ++c) sum += std::exp(3.0 * in[0][at(row * 4 + c)]);
            for (std::int64_t c = 0; c < 4; ++c) {
              out.push_back(c < seen ? std::exp(3.0 * in[0][at(row * 4 + c)]) / sum : 0.0);
            }
          }
          return out;
        },
        {{2, 1, 4, 4}});
}

// labels: autograd.dropout autograd.bias_dropout_add
TEST_F(FunctionGradients, DropoutDrawsTheSameMaskInBackward) {
  const Rng rng{42, 7};
  const auto keep = [&](std::size_t i) { return rng.uniform(i) >= 0.25f ? 1.0 / 0.75 : 0.0; };
  check([&](auto& in) { return autograd::dropout(in[0], 0.25f, rng); },
        [&](const Inputs& in) {
          Values out;
          for (std::size_t i = 0; i < in[0].size(); ++i) out.push_back(in[0][i] * keep(i));
          return out;
        },
        {{5, 7}});
  check([&](auto& in) { return autograd::bias_dropout_add(in[0], in[1], in[2], 0.25f, rng); },
        [&](const Inputs& in) {
          Values out;
          for (std::size_t i = 0; i < in[0].size(); ++i) {
            out.push_back(in[2][i] + (in[0][i] + in[1][i % 7]) * keep(i));
          }
          return out;
        },
        {{5, 7}, {7}, {5, 7}});
}

// labels: autograd.embedding
TEST_F(FunctionGradients, EmbeddingSumsRowsThatAreUsedTwice) {
  const Tensor ids = Tensor::from_vector(context, {2, 2}, std::vector<std::int64_t>{3, 5, 3, 9});
  check([&](auto& in) { return autograd::embedding(ids, in[0], 3); },
        [&](const Inputs& in) {
          Values out;
          for (const std::int64_t id : {3, 5, 3, 9}) {
            for (std::int64_t c = 0; c < 2; ++c) {
              out.push_back(id - 3 < 4 ? in[0][at((id - 3) * 2 + c)] : 0.0);
            }
          }
          return out;
        },
        {{4, 2}});
  const Tensor table = leaf({4, 2}, 1, DType::bfloat16);
  const Tensor main_grad = Tensor::zeros(context, {4, 2}, DType::float32);
  autograd::variable_meta(table)->main_grad = main_grad;
  autograd::backward(autograd::sum(autograd::embedding(ids, table, 3)));
  EXPECT_EQ(values_of(main_grad), (Values{2, 2, 0, 0, 1, 1, 0, 0}));
  EXPECT_FALSE(autograd::grad_of(table).defined());
}

// labels: autograd.cross_entropy
TEST_F(FunctionGradients, CrossEntropy) {
  const Tensor labels = Tensor::from_vector(context, {3}, std::vector<std::int64_t>{1, -100, 4});
  check(
      [&](auto& in) {
        // Backward overwrites the logits, so the leaf gets a copy of its own.
        return autograd::cross_entropy(autograd::scale(in[0], 1.0f), labels, 5);
      },
      [&](const Inputs& in) {
        Values out;
        const std::int64_t targets[] = {1, -100, 4};
        for (std::int64_t t = 0; t < 3; ++t) {
          double sum = 0.0;
          for (std::int64_t c = 0; c < 5; ++c) sum += std::exp(in[0][at(t * 6 + c)]);
          out.push_back(targets[t] < 0 ? 0.0 : std::log(sum) - in[0][at(t * 6 + targets[t])]);
        }
        return out;
      },
      {{3, 6}});
}

// labels: autograd.flash_attention
TEST_F(FunctionGradients, FlashAttention) {
  ops::FlashAttentionOptions options;
  options.scale = 0.5f;
  check([&](auto& in) { return autograd::flash_attention(in[0], in[1], in[2], options); },
        [&](const Inputs& in) {
          const testing::Heads q{3, 1, 2, 4, in[0]};
          const testing::Heads k{3, 1, 1, 4, in[1]};
          const testing::Heads v{3, 1, 1, 4, in[2]};
          return testing::attention_oracle(q, k, v, q, options).o.values;
        },
        {{3, 1, 2, 4}, {3, 1, 1, 4}, {3, 1, 1, 4}});
}

// labels: autograd.rotary
TEST_F(FunctionGradients, Rotary) {
  check([&](auto& in) { return autograd::rotary(in[0], 4, 100.0); },
        [&](const Inputs& in) {
          Values out = in[0];
          for (std::int64_t s = 0; s < 3; ++s) {
            for (std::int64_t i = 0; i < 2; ++i) {
              const double angle = double(s) * std::pow(100.0, -2.0 * double(i) / 4.0);
              const double a = in[0][at(s * 6 + i)];
              const double b = in[0][at(s * 6 + i + 2)];
              out[at(s * 6 + i)] = a * std::cos(angle) - b * std::sin(angle);
              out[at(s * 6 + i + 2)] = b * std::cos(angle) + a * std::sin(angle);
            }
          }
          return out;
        },
        {{3, 1, 1, 6}});
}

}  // namespace
}  // namespace kitchen
