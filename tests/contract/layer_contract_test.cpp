#include "contract/contract.h"

#include "kitchen/ops/activation.h"
#include "kitchen/ops/cross_entropy.h"
#include "kitchen/ops/dropout.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/ops/embedding.h"
#include "kitchen/ops/norm.h"
#include "kitchen/ops/optimizer.h"
#include "kitchen/ops/softmax.h"

#include <cmath>
#include <initializer_list>
#include <utility>

namespace kitchen::testing {
namespace {

/// Rows and columns: one element, primes, a team of lanes ± 1, a chunk of 128 rows ± 1, no rows.
const std::vector<std::pair<std::int64_t, std::int64_t>> kMatrices = {
    {1, 1}, {3, 7}, {5, 8}, {31, 9}, {127, 17}, {128, 64}, {129, 131}, {300, 1025}, {0, 16}};

class LayerContract : public BackendContract {
 protected:
  /// Runs `work(inputs)`, which gives a list of tensors, on host tensors and on copies of them off
  /// their alignment in the backend's memory, on a fresh stream; all results must have the same
  /// bits.
  template <class Work>
  void expect_same(const std::vector<Tensor>& inputs, const Work& work) {
    std::vector<Guarded> copies;
    std::vector<Tensor> moved;
    for (const Tensor& input : inputs) {
      copies.push_back(placed(context(), input, 1));
      moved.push_back(copies.back().tensor());
    }
    std::vector<Tensor> actual;
    on_fresh_stream([&] {
      for (const Tensor& result : work(moved)) actual.push_back(result.to(cpu()));
    });
    const std::vector<Tensor> expected = work(inputs);
    ASSERT_EQ(expected.size(), actual.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(same_bits(expected[i], actual[i])) << "result " << i;
    }
    for (const Guarded& copy : copies) EXPECT_TRUE(copy.guards_are_intact());
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, LayerContract, ::testing::ValuesIn(backend_names()),
                         &name_of_backend);

using Tensors = std::vector<Tensor>;

/// Positions of `values` as an int64 tensor.
Tensor labels_of(const ContextPtr& cpu, const std::vector<std::int64_t>& values) {
  return Tensor::from_vector<std::int64_t>(cpu, {static_cast<std::int64_t>(values.size())}, values);
}

// labels: ops.sum_rows ops.sum_all
TEST_P(LayerContract, SumsFollowTheWrittenOrder) {
  for (const auto& [rows, cols] : kMatrices) {
    for (const DType dtype : kHighPrecision) {
      SCOPED_TRACE(std::to_string(rows) + " " + std::to_string(cols) + " " + to_string(dtype));
      expect_same({sample(cpu(), {rows, cols}, dtype, 30)}, [](const Tensors& t) {
        const Tensor total = ops::sum_rows(t[0]);
        ops::sum_rows_into(t[0], total);
        return Tensors{total, ops::sum_all(t[0]), ops::sum_squares({t[0], t[0]})};
      });
    }
  }
}

// labels: ops.activation_forward ops.activation_backward
TEST_P(LayerContract, EveryActivationGivesTheReferencesBits) {
  for (const ops::Activation activation : {ops::Activation::gelu, ops::Activation::gelu_tanh,
                                           ops::Activation::silu, ops::Activation::relu}) {
    for (const DType dtype : kHighPrecision) {
      for (const bool gated : {false, true}) {
        SCOPED_TRACE(to_string(activation) + " " + to_string(dtype) + (gated ? " gated" : ""));
        const ops::ActivationOptions options{activation, gated, gated ? 1.0f : 0.0f};
        const std::int64_t cols = 137;
        const std::int64_t wide = gated ? 2 * cols : cols;
        expect_same({sample(cpu(), {67, wide}, dtype, 31), sample(cpu(), {wide}, dtype, 32),
                     sample(cpu(), {67, cols}, dtype, 33)},
                    [&](const Tensors& t) {
                      return Tensors{ops::activation_forward(t[0], t[1], options),
                                     ops::activation_forward(t[0], Tensor(), options),
                                     ops::activation_backward(t[2], t[0], t[1], options)};
                    });
      }
    }
  }
}

// labels: ops.norm_forward ops.norm_backward
TEST_P(LayerContract, NormsAndTheirGradientsGiveTheReferencesBits) {
  for (const auto& [rows, cols] : kMatrices) {
    for (const DType dtype : kHighPrecision) {
      for (const ops::NormKind kind : {ops::NormKind::layer_norm, ops::NormKind::rms_norm}) {
        SCOPED_TRACE(std::to_string(rows) + " " + std::to_string(cols) + " " + to_string(dtype));
        const bool is_layer_norm = kind == ops::NormKind::layer_norm;
        const ops::NormOptions options{kind, 1e-5f, !is_layer_norm};
        expect_same(
            {sample(cpu(), {rows, cols}, dtype, 34), sample(cpu(), {cols}, dtype, 35),
             sample(cpu(), {cols}, DType::float32, 36), sample(cpu(), {rows, cols}, dtype, 37)},
            [&](const Tensors& t) {
              const Tensor beta = is_layer_norm ? t[2] : Tensor();
              const ops::NormResult forward = ops::norm_forward(t[0], t[1], beta, options);
              const ops::NormGradients backward =
                  ops::norm_backward(t[3], t[0], t[1], forward.mean, forward.rstd, options);
              Tensors results = {forward.y, forward.rstd, backward.dx, backward.dgamma};
              if (is_layer_norm) results.insert(results.end(), {forward.mean, backward.dbeta});
              return results;
            });
      }
    }
  }
}

// labels: ops.softmax_forward ops.softmax_backward
TEST_P(LayerContract, SoftmaxWithEveryMaskGivesTheReferencesBits) {
  for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{2, 3, 5, 7}, Shape{1, 2, 33, 130}}) {
    std::vector<std::uint8_t> flags(static_cast<std::size_t>(shape[2] * shape[3]));
    for (std::size_t i = 0; i < flags.size(); ++i) flags[i] = i % 3 == 1 ? 1 : 0;
    const Tensor bytes =
        Tensor::from_vector<std::uint8_t>(cpu(), {1, 1, shape[2], shape[3]}, flags);
    const Tensor mask = Tensor::empty(cpu(), bytes.shape(), DType::boolean);
    std::copy(flags.begin(), flags.end(), mask.data<std::uint8_t>());
    for (const float masked_value : {-10000.0f, -HUGE_VALF}) {
      for (const bool causal : {false, true}) {
        SCOPED_TRACE(to_string(shape) + (causal ? " causal" : ""));
        const ops::SoftmaxOptions options{0.37f, causal, masked_value};
        expect_same({sample(cpu(), shape, DType::bfloat16, 38), mask,
                     sample(cpu(), shape, DType::float32, 39)},
                    [&](const Tensors& t) {
                      const Tensor p = ops::softmax_forward(t[0], t[1], options);
                      return Tensors{p, ops::softmax_forward(t[2], Tensor(), options),
                                     ops::softmax_backward(t[2], p, t[1], options)};
                    });
      }
    }
  }
}

// labels: ops.dropout
TEST_P(LayerContract, DropoutDrawsTheReferencesMask) {
  const Rng rng{99, (std::uint64_t{1} << 40) + 3};
  for (const auto& [rows, cols] : kMatrices) {
    for (const float p : {0.0f, 0.3f}) {
      SCOPED_TRACE(std::to_string(rows) + " " + std::to_string(cols));
      expect_same({sample(cpu(), {rows, cols}, DType::bfloat16, 40),
                   sample(cpu(), {cols}, DType::float32, 41),
                   sample(cpu(), {rows, cols}, DType::float32, 42)},
                  [&](const Tensors& t) {
                    return Tensors{ops::dropout(t[0], p, rng),
                                   ops::bias_dropout_add(t[0], t[1], t[2], p, rng),
                                   ops::bias_dropout_add(t[0], Tensor(), t[2], p, rng)};
                  });
    }
  }
}

// labels: ops.embedding_forward ops.embedding_backward_into
TEST_P(LayerContract, EmbeddingAddsTokensInAscendingOrder) {
  std::vector<std::int64_t> ids;
  for (std::int64_t t = 0; t < 301; ++t) ids.push_back(t * t % 97 - 3);
  for (const DType dtype : kHighPrecision) {
    expect_same({labels_of(cpu(), ids), sample(cpu(), {89, 131}, dtype, 43),
                 sample(cpu(), {301, 131}, dtype, 44)},
                [](const Tensors& t) {
                  const Tensor gradient = Tensor::zeros(t[1].context(), {89, 131}, DType::float32);
                  ops::embedding_backward_into(t[2], t[0], gradient, 2);
                  return Tensors{ops::embedding_forward(t[0], t[1], 2), gradient};
                });
  }
}

// labels: ops.cross_entropy_forward ops.cross_entropy_backward_inplace
TEST_P(LayerContract, CrossEntropyAndItsGradientGiveTheReferencesBits) {
  for (const std::int64_t vocab : {1, 15, 16, 17, 1003}) {
    for (const DType dtype : kHighPrecision) {
      SCOPED_TRACE(std::to_string(vocab) + " " + to_string(dtype));
      std::vector<std::int64_t> labels;
      for (std::int64_t t = 0; t < 37; ++t) labels.push_back(t % 5 == 4 ? -100 : t * 7 % vocab);
      Tensor logits = sample(cpu(), {37, vocab + 5}, dtype, 45);
      expect_same({logits, labels_of(cpu(), labels), sample(cpu(), {37}, DType::float32, 46)},
                  [&](const Tensors& t) {
                    const ops::CrossEntropyResult forward =
                        ops::cross_entropy_forward(t[0], t[1], vocab);
                    const Tensor own = Tensor::empty(t[0].context(), t[0].shape(), dtype);
                    ops::copy_into(t[0], own);
                    return Tensors{
                        forward.losses, forward.lse,
                        ops::cross_entropy_backward_inplace(t[2], own, t[1], forward.lse, vocab)};
                  });
    }
  }
}

// labels: ops.normal_init
TEST_P(LayerContract, WeightsOfAShardAreTheReferences) {
  for (const DType dtype : kHighPrecision) {
    expect_same({Tensor::empty(cpu(), {3, 17, 5}, dtype)}, [](const Tensors& t) {
      ops::normal_init(t[0], 51, 0.5, 0.02, {4, 40, 11}, {1, 20, 3});
      return Tensors{ops::cast(t[0], DType::float32)};
    });
  }
}

// labels: ops.adamw_step ops.clip_scale
TEST_P(LayerContract, AdamWGivesTheReferencesBitsAndSkipsWhatIsNotFinite) {
  for (const float scale : {0.25f, HUGE_VALF}) {
    for (const DType dtype : kHighPrecision) {
      SCOPED_TRACE(std::to_string(scale) + " " + to_string(dtype));
      const auto moment = [&](std::uint64_t key) {
        const Tensor x = sample(cpu(), {70001}, DType::float32, key);
        return ops::multiply(x, x);
      };
      expect_same(
          {sample(cpu(), {70001}, DType::float32, 47), moment(48), moment(49),
           sample(cpu(), {70001}, dtype, 50), Tensor::from_vector<float>(cpu(), {1}, {scale})},
          [&](const Tensors& t) {
            const Tensor main = ops::scale(t[0], 1.0f);
            const Tensor m = ops::scale(t[1], 1.0f);
            const Tensor v = ops::scale(t[2], 1.0f);
            const Tensor model = ops::cast(ops::scale(main, 2.0f), dtype);
            ops::AdamWOptions options;
            options.weight_decay = 0.1f;
            options.step = 7;
            ops::adamw_step(main, m, v, t[3], t[4], model, options);
            const ops::ClipScale clip = ops::clip_scale(ops::sum_squares({t[3]}), 1.0f);
            return Tensors{main, m, v, model, clip.norm, clip.scale};
          });
    }
  }
}

}  // namespace
}  // namespace kitchen::testing
