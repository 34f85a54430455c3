#include "kitchen/train/training_step.h"

#include "kitchen/base/logger.h"
#include "kitchen/parallel/rng_tracker.h"
#include "kitchen/reference/cpu_backend.h"
#include "kitchen/train/model_factory.h"
#include "support/compare.h"
#include "support/values.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace kitchen::train {
namespace {

constexpr std::int64_t kSeq = 8;

/// A small model with its optimizer; equal arguments give equal weights.
struct Fixture {
  explicit Fixture(const std::string& precision = "fp32", const std::string& recipe = "") {
    settings.num_layers = 1;
    settings.hidden_size = 16;
    settings.num_attention_heads = 2;
    settings.seq_length = kSeq;
    settings.vocab_size = 17;
    settings.precision = precision;
    if (!recipe.empty()) settings.kitchen_recipe_name = recipe;
    context = testing::poisoned_context();
    set_default_context(context);
    model_parallel_cuda_manual_seed(11);
    model = make_model(settings, make_transformer_config(settings));
    optimizer = std::make_unique<Optimizer>(*model, Optimizer::Options{});
    step = std::make_unique<TrainingStep>(*model, *optimizer);
  }

  /// Rows of tokens; `counted[i]` labels of row i count, the others are -100.
  [[nodiscard]] Batch batch(const std::vector<int>& rows, const std::vector<int>& counted) const {
    std::vector<std::int64_t> inputs;
    std::vector<std::int64_t> labels;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      for (int s = 0; s < kSeq; ++s) {
        inputs.push_back((rows[r] * 5 + s * 3) % 17);
        labels.push_back(s < counted[r] ? (rows[r] + s * 7) % 17 : -100);
      }
    }
    const Shape shape{static_cast<std::int64_t>(rows.size()), kSeq};
    return {Tensor::from_vector(context, shape, inputs),
            Tensor::from_vector(context, shape, labels)};
  }

  [[nodiscard]] std::vector<double> gradients() const {
    std::vector<double> all;
    for (const auto& [name, parameter] : model->named_parameters()) {
      const std::vector<double> values = testing::values_of(parameter->main_grad());
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  /// Parameters and optimizer state, as bytes.
  [[nodiscard]] std::vector<std::vector<float>> state() const {
    std::vector<std::vector<float>> all;
    for (const NamedTensor& tensor : optimizer->state()) {
      all.push_back(tensor.tensor.to_vector<float>());
    }
    for (const auto& [name, parameter] : model->named_parameters()) {
      if (parameter->dtype() == DType::float32)
        all.push_back(parameter->detach().to_vector<float>());
    }
    return all;
  }

  TrainSettings settings;
  ContextPtr context;
  std::shared_ptr<GPTModel> model;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<TrainingStep> step;
};

double scalar(const Tensor& tensor) {
  return static_cast<double>(tensor.to_vector<float>().at(0));
}

// labels: train.TrainingStep T21 T11
TEST(TrainingStep, UnevenMicroBatchesGiveTheGradientOfTheWholeBatch) {
  // 3 and 7 labels count: the mean over 10 tokens, not the mean of two means.
  Fixture whole;
  const StepResult one = whole.step->run({whole.batch({1, 2, 3, 4}, {3, 0, 2, 5})}, 1e-3, 1);
  Fixture parts;
  const StepResult two =
      parts.step->run({parts.batch({1, 2}, {3, 0}), parts.batch({3, 4}, {2, 5})}, 1e-3, 1);
  EXPECT_EQ(one.num_tokens, 10);
  EXPECT_EQ(two.num_tokens, 10);
  EXPECT_NEAR(scalar(one.loss_sum), scalar(two.loss_sum), 1e-5 * scalar(one.loss_sum));
  EXPECT_TRUE(testing::close(whole.gradients(), parts.gradients(), 1e-7, 1e-5));
  EXPECT_NEAR(scalar(one.clip.norm), scalar(two.clip.norm), 1e-5 * scalar(one.clip.norm));
}

// labels: train.TrainingStep T11
TEST(TrainingStep, SameMicroBatchTwiceGivesItsOwnMeanGradientAndNotTwiceIt) {
  Fixture once;
  (void)once.step->run({once.batch({1, 2}, {8, 8})}, 1e-3, 1);
  Fixture twice;
  (void)twice.step->run({twice.batch({1, 2}, {8, 8}), twice.batch({1, 2}, {8, 8})}, 1e-3, 1);
  EXPECT_TRUE(testing::close(once.gradients(), twice.gradients(), 1e-8, 1e-6));
}

// labels: train.TrainingStep T11
TEST(TrainingStep, GradientsOfFormerStepsDoNotLinger) {
  Fixture first;
  (void)first.step->run({first.batch({1, 2}, {8, 8})}, 0.0, 1);
  const std::vector<double> expected = first.gradients();
  (void)first.step->run({first.batch({3, 4}, {8, 8})}, 0.0, 2);
  (void)first.step->run({first.batch({1, 2}, {8, 8})}, 0.0, 3);
  // At rate 0 the weights stay (the decay is lr·decay), so the gradient is the same again, bit for
  // bit.
  EXPECT_EQ(first.gradients(), expected);
}

// labels: train.TrainingStep T05 T06
TEST(TrainingStep, MaskedBatchHasLossZeroGradientZeroAndOneWarning) {
  for (const char* recipe : {"", "mxfp8"}) {
    Fixture f("bf16", recipe);
    const LogCapture log;
    for (int step = 1; step <= 3; ++step) {
      const StepResult result =
          f.step->run({f.batch({1, 2}, {0, 0}), f.batch({3, 4}, {0, 0})}, 1e-3, step);
      EXPECT_EQ(result.num_tokens, 0);
      EXPECT_EQ(scalar(result.loss_sum), 0.0);
      EXPECT_EQ(scalar(result.clip.norm), 0.0);
      for (const double gradient : f.gradients()) EXPECT_EQ(gradient, 0.0);
      EXPECT_EQ(log.count(LogLevel::warning, "no label of the batch counts"), step);
    }
  }
}

// labels: train.TrainingStep T05
TEST(TrainingStep, MaskedMicroBatchLeavesTheOtherOnesGradient) {
  Fixture alone;
  (void)alone.step->run({alone.batch({1, 2}, {8, 3})}, 1e-3, 1);
  Fixture beside;
  const LogCapture log;
  (void)beside.step->run({beside.batch({3, 4}, {0, 0}), beside.batch({1, 2}, {8, 3})}, 1e-3, 1);
  EXPECT_EQ(alone.gradients(), beside.gradients());
  EXPECT_EQ(log.count(LogLevel::warning, "no label"), 0);
}

// labels: train.TrainingStep train.Optimizer T01
TEST(TrainingStep, GradientThatIsNotFiniteChangesNeitherWeightsNorMoments) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const char* precision : {"fp32", "bf16"}) {
      Fixture f(precision);
      (void)f.step->run({f.batch({1, 2}, {8, 8})}, 1e-3, 1);
      const auto before = f.state();
      const std::vector<double> logits_before =
          testing::values_of(evaluate_loss_sum(*f.model, f.batch({1, 2}, {8, 8})));
      f.step->before_update = [&](std::int64_t) {
        f.model->named_parameters().back().second->main_grad().data<float>()[0] = bad;
      };
      const StepResult result = f.step->run({f.batch({1, 2}, {8, 8})}, 1e-3, 2);
      EXPECT_FALSE(std::isfinite(scalar(result.clip.norm)));
      EXPECT_EQ(f.state(), before);
      EXPECT_EQ(testing::values_of(evaluate_loss_sum(*f.model, f.batch({1, 2}, {8, 8}))),
                logits_before);
      f.step->before_update = nullptr;
      (void)f.step->run({f.batch({1, 2}, {8, 8})}, 1e-3, 3);
      EXPECT_NE(f.state(), before);
    }
  }
}

// labels: train.TrainingStep train.Optimizer T01
TEST(TrainingStep, SkippedStepIsAsIfItHadNeverBeen) {
  Fixture skipping("bf16");
  Fixture plain("bf16");
  for (Fixture* f : {&skipping, &plain}) {
    (void)f->step->run({f->batch({1, 2}, {8, 8})}, 1e-3, 1);
    if (f == &skipping) {
      f->step->before_update = [&](std::int64_t) {
        f->model->named_parameters().back().second->main_grad().data<float>()[0] =
            std::numeric_limits<float>::infinity();
      };
      (void)f->step->run({f->batch({5, 6}, {8, 8})}, 1e-3, 2);
      f->step->before_update = nullptr;
    }
    (void)f->step->run({f->batch({3, 4}, {8, 8})}, 1e-3, 3, 2);
  }
  EXPECT_EQ(skipping.state(), plain.state());
}

// labels: train.Optimizer
TEST(Optimizer, UpdateIsAdamWWithClippingAndDecayOfMatricesOnly) {
  // The first update of AdamW by its definition, in fp64, from the gradient that the step left.
  Fixture f;
  std::vector<std::vector<double>> before;
  for (const auto& [name, parameter] : f.model->named_parameters()) {
    before.push_back(testing::values_of(parameter->detach()));
  }
  const Optimizer::Options options{0.9, 0.95, 1e-8, 0.1, 0.01};  // clips: the norm is about 1
  Optimizer optimizer(*f.model, options);
  TrainingStep step(*f.model, optimizer);
  const StepResult result = step.run({f.batch({1, 2}, {8, 8})}, 1e-2, 1);
  EXPECT_GT(scalar(result.clip.norm), 0.01);
  const double clip = 0.01 / (scalar(result.clip.norm) + 1e-6);
  std::size_t i = 0;
  for (const auto& [name, parameter] : f.model->named_parameters()) {
    std::vector<double> expected = before[i++];
    const std::vector<double> gradient = testing::values_of(parameter->main_grad());
    const double decay = parameter->rank() >= 2 ? 0.1 : 0.0;
    for (std::size_t j = 0; j < expected.size(); ++j) {
      const double g = gradient[j] * clip;
      expected[j] -= 1e-2 * (g / (std::fabs(g) + 1e-8) + decay * expected[j]);
    }
    // fp32: a few roundings of values up to 1; where |g| is near eps the quotient is as exact as g.
    EXPECT_TRUE(testing::close(expected, testing::values_of(parameter->detach()), 1e-7, 1e-6))
        << name;
  }
}

// labels: train.Optimizer ruling-6.11
TEST(Optimizer, Bf16ParameterIsTheRoundedMainWeight) {
  Fixture f("bf16");
  for (int step = 1; step <= 3; ++step) (void)f.step->run({f.batch({1, 2}, {8, 8})}, 1e-4, step);
  std::map<std::string, Tensor> main;
  for (const NamedTensor& tensor : f.optimizer->state()) main[tensor.name] = tensor.tensor;
  bool some_main_weight_is_finer = false;
  for (const auto& [name, parameter] : f.model->named_parameters()) {
    EXPECT_EQ(parameter->dtype(), DType::bfloat16);
    const std::vector<double> exact = testing::values_of(main.at(name + ".main"));
    const std::vector<double> rounded = testing::values_of(parameter->detach());
    EXPECT_TRUE(
        testing::close(exact, rounded, 1e-38, std::ldexp(1.0, -8)));  // half an ulp of 8 bits
    some_main_weight_is_finer = some_main_weight_is_finer || exact != rounded;
  }
  EXPECT_TRUE(some_main_weight_is_finer);
}

// labels: train.TrainingStep
TEST(TrainingStep, PositionsCountFromZeroInEachRow) {
  const ContextPtr context = reference::make_cpu_context();
  EXPECT_EQ(
      position_ids_like(Tensor::zeros(context, {2, 3}, DType::int64)).to_vector<std::int64_t>(),
      (std::vector<std::int64_t>{0, 1, 2, 0, 1, 2}));
}

}  // namespace
}  // namespace kitchen::train
