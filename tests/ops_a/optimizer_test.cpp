#include "kitchen/ops/optimizer.h"
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

struct State {
  Tensor main, exp_avg, exp_avg_sq, model;
};

State make_state(const ContextPtr& context, std::int64_t count, DType model_dtype) {
  State state;
  state.main = tensor_of(context, {count}, DType::float32, grid_values(count, 1));
  state.exp_avg = Tensor::zeros(context, {count}, DType::float32);
  state.exp_avg_sq = Tensor::zeros(context, {count}, DType::float32);
  state.model = ops::cast(state.main, model_dtype);
  return state;
}

void step(const State& state, const Tensor& grad, const Tensor& scale,
          const ops::AdamWOptions& options) {
  ops::adamw_step(state.main, state.exp_avg, state.exp_avg_sq, grad, scale, state.model, options);
}

Tensor scalar(const ContextPtr& context, double value) {
  return tensor_of(context, {1}, DType::float32, {value});
}

// labels: ops.adamw_step
TEST(AdamW, FollowsTheFp64RecurrenceOverFiveSteps) {
  const ContextPtr context = poisoned_context();
  for (const std::int64_t count : {std::int64_t{1}, std::int64_t{1025}, std::int64_t{40009}}) {
    for (const DType grad_dtype : {DType::float32, DType::bfloat16}) {
      for (const DType model_dtype : {DType::float32, DType::bfloat16, DType::float16}) {
        const State state = make_state(context, count, model_dtype);
        ops::AdamWOptions options;
        options.lr = 0.01f;
        options.beta1 = 0.9f;
        options.beta2 = 0.95f;
        options.weight_decay = 0.1f;
        std::vector<double> w = grid_values(count, 1);
        std::vector<double> m(w.size()), v(w.size());
        for (options.step = 1; options.step <= 5; ++options.step) {
          const auto grad = grid_values(count, static_cast<std::uint64_t>(options.step) + 10);
          step(state, tensor_of(context, {count}, grad_dtype, grad), scalar(context, 0.5), options);
          const auto t = static_cast<double>(options.step);
          for (std::size_t i = 0; i < w.size(); ++i) {
            const double g = 0.5 * grad[i];
            m[i] = 0.9 * m[i] + 0.1 * g;
            v[i] = 0.95 * v[i] + 0.05 * g * g;
            const double m_hat = m[i] / (1.0 - std::pow(0.9, t));
            const double v_hat = v[i] / (1.0 - std::pow(0.95, t));
            w[i] -= 0.01 * (m_hat / (std::sqrt(v_hat) + 1e-8) + 0.1 * w[i]);
          }
        }
        // Each step moves w by at most 0.01·(3.2 + 0.4); fp32 betas and 10 roundings a step give
        // about 2e-6 of that (m may cancel, so absolute), and w itself rounds by 4·2^-24 a step.
        EXPECT_TRUE(close(w, values_of(state.main), 5 * (0.036 * 2e-6 + 4 * 0x1p-24), 0.0));
        EXPECT_TRUE(same_bits(ops::cast(state.main, model_dtype), state.model));
      }
    }
  }
}

// labels: ops.adamw_step
TEST(AdamW, TheModelMayBeTheMainWeights) {
  const ContextPtr context = poisoned_context();
  const State apart = make_state(context, 100, DType::float32);
  const State shared = [&] {
    State state = make_state(context, 100, DType::float32);
    state.model = state.main;
    return state;
  }();
  const Tensor fresh = ops::cast(ops::cast(apart.main, DType::float16), DType::float32);
  State detached = apart;
  detached.model = fresh;
  const Tensor grad = tensor_of(context, {100}, DType::float32, grid_values(100, 2));
  step(detached, grad, scalar(context, 1.0), {});
  step(shared, grad, scalar(context, 1.0), {});
  EXPECT_TRUE(same_bits(detached.main, shared.main));
  EXPECT_TRUE(same_bits(detached.main, detached.model));
}

// labels: ops.adamw_step ops.clip_scale ops.sum_squares T01
TEST(AdamW, NaNOrInfGradientNormLeavesEverythingUnchanged) {
  const ContextPtr context = poisoned_context();
  for (const double bad : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    const State state = make_state(context, 5000, DType::bfloat16);
    std::vector<double> values = grid_values(5000, 2);
    values[4097] = bad;
    const Tensor grad = tensor_of(context, {5000}, DType::float32, values);
    const ops::ClipScale clip = ops::clip_scale(ops::sum_squares({grad}), 1.0f);
    EXPECT_FALSE(std::isfinite(clip.norm.to_vector<float>()[0]));
    EXPECT_TRUE(std::isnan(clip.scale.to_vector<float>()[0]));
    step(state, grad, clip.scale, {});
    const State before = make_state(context, 5000, DType::bfloat16);
    EXPECT_TRUE(same_bits(before.main, state.main));
    EXPECT_TRUE(same_bits(before.exp_avg, state.exp_avg));
    EXPECT_TRUE(same_bits(before.exp_avg_sq, state.exp_avg_sq));
    EXPECT_TRUE(same_bits(before.model, state.model));
  }
}

// labels: ops.sum_squares G15
TEST(SumSquares, EqualsTheSumOverAllTensors) {
  const ContextPtr context = poisoned_context();
  std::vector<Tensor> tensors;
  double sum = 0.0;
  for (const std::int64_t count : {0, 1, 7, 4095, 4096, 4097, 30011}) {
    for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
      const auto values = grid_values(count, static_cast<std::uint64_t>(count));
      for (const double v : values) sum += v * v;
      tensors.push_back(tensor_of(context, {count}, dtype, values));
    }
  }
  // fp64 sums of multiples of 2^-10 are exact; one rounding to fp32 remains.
  EXPECT_TRUE(close({sum}, values_of(ops::sum_squares(tensors)), 0.0, 0x1p-24));
  const Tensor matrix = tensor_of(context, {6, 5}, DType::float32, grid_values(30, 4));
  EXPECT_TRUE(same_bits(ops::sum_squares({matrix}), ops::sum_squares({matrix.transpose(0, 1)})));
  EXPECT_THROW((void)ops::sum_squares({}), ValueError);
  EXPECT_THROW((void)ops::sum_squares({Tensor::zeros(context, {2}, DType::int64)}), TypeError);
}

// labels: ops.clip_scale
TEST(ClipScale, KeepsTheNormAtItsLimit) {
  const ContextPtr context = poisoned_context();
  const auto factor = [&](double squares, float max_norm) {
    return static_cast<double>(
        ops::clip_scale(scalar(context, squares), max_norm).scale.to_vector<float>()[0]);
  };
  EXPECT_EQ(ops::clip_scale(scalar(context, 16.0), 1.0f).norm.to_vector<float>()[0], 4.0f);
  EXPECT_TRUE(close({1.0 / (4.0 + 1e-6)}, {factor(16.0, 1.0f)}, 0.0, 0x1p-22));
  EXPECT_EQ(factor(16.0, 5.0f), 1.0);
  EXPECT_EQ(factor(16.0, 0.0f), 1.0);
  EXPECT_EQ(factor(0.0, 1.0f), 1.0);
  EXPECT_TRUE(std::isnan(factor(-1.0, 1.0f)));
  EXPECT_THROW((void)ops::clip_scale(Tensor::zeros(context, {2}, DType::float32), 1.0f),
               ValueError);
}

// labels: ops.adamw_step ops.sum_squares
TEST(AdamW, ResultsDoNotDependOnThreads) {
  const ContextPtr context = poisoned_context();
  const std::int64_t count = 100003;
  std::vector<double> values = grid_values(count, 2);
  for (double& v : values) v *= 0.1 + v * v;
  const Tensor grad = tensor_of(context, {count}, DType::float32, values);
  const auto results = [&] {
    const State state = make_state(context, count, DType::bfloat16);
    const Tensor squares = ops::sum_squares({grad, state.main});
    step(state, grad, ops::clip_scale(squares, 1.0f).scale, {});
    return std::vector<Tensor>{squares, state.main, state.model, state.exp_avg, state.exp_avg_sq};
  };
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  const std::vector<Tensor> one = results();
  omp_set_num_threads(2);
  const std::vector<Tensor> two = results();
  omp_set_num_threads(threads);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(same_bits(one[i], two[i])) << i;
}

// labels: ops.adamw_step
TEST(AdamW, WrongOperandsAreRefused) {
  const ContextPtr context = poisoned_context();
  const State state = make_state(context, 6, DType::bfloat16);
  const Tensor grad = Tensor::zeros(context, {6}, DType::float32);
  const Tensor one = scalar(context, 1.0);
  EXPECT_THROW(step(state, Tensor::zeros(context, {5}, DType::float32), one, {}), ValueError);
  EXPECT_THROW(step(state, Tensor::zeros(context, {3, 2}, DType::float32).transpose(0, 1), one, {}),
               ValueError);
  EXPECT_THROW(step(state, grad, grad, {}), ValueError);
  ops::AdamWOptions options;
  options.step = 0;
  EXPECT_THROW(step(state, grad, one, options), ValueError);
  State wrong = state;
  wrong.main = state.model;
  EXPECT_THROW(step(wrong, grad, one, {}), TypeError);
}

// labels: ops.sum_squares ops.adamw_step R05
TEST(SumSquares, MetaTensorOfMoreThanTwoToThe31ElementsIsCounted) {
  const ContextPtr meta = make_meta_context(*reference::make_cpu_context());
  const Tensor x = Tensor::empty(meta, {2476250368}, DType::float32);
  EXPECT_EQ(ops::sum_squares({x}).shape(), (Shape{1}));
  ops::adamw_step(x, x, x, x, Tensor::empty(meta, {1}, DType::float32), x, {});
}

}  // namespace
}  // namespace kitchen
