#include "kitchen/base/rank_state.h"
#include "kitchen/modules/linear.h"
#include "kitchen/parallel/collective_recorder.h"
#include "kitchen/parallel/process_group_collection.h"
#include "kitchen/parallel/run_ranks.h"
#include "kitchen/train/model_factory.h"
#include "kitchen/train/parallel_settings.h"
#include "kitchen/train/training_step.h"
#include "support/compare.h"
#include "support/expect_error.h"
#include "support/values.h"

#include <gtest/gtest.h>

#include <cstring>
#include <mutex>
#include <string>
#include <vector>

namespace kitchen::train {
namespace {

using testing::throws;
using testing::values_of;

constexpr std::int64_t kGlobalBatch = 4;

/// How a small training is spread, and in which arithmetic.
struct Plan {
  explicit Plan(std::int64_t all_ranks = 1, std::int64_t tensor_ranks = 1,
                bool split_sequence = false)
      : ranks(all_ranks), tensor(tensor_ranks), sequence(split_sequence) {}

  std::int64_t ranks;
  std::int64_t tensor;
  bool sequence;
  std::string precision = "fp32";
  std::string recipe;
  std::string topology = "transformer_engine";
  bool qk_layernorm = false;
};

TrainSettings settings_of(const Plan& plan) {
  TrainSettings s;
  s.num_layers = 2;
  s.hidden_size = 32;
  s.num_attention_heads = 4;
  s.seq_length = 8;
  s.vocab_size = 29;
  s.make_vocab_size_divisible_by = 2;
  s.precision = plan.precision;
  s.transformer_impl = plan.topology;
  s.qk_layernorm = plan.qk_layernorm;
  if (!plan.recipe.empty()) s.kitchen_recipe_name = plan.recipe;
  s.ranks = plan.ranks;
  s.tensor_model_parallel_size = plan.tensor;
  s.sequence_parallel = plan.sequence;
  s.global_batch_size = kGlobalBatch;
  s.micro_batch_size = kGlobalBatch / (plan.ranks / plan.tensor);
  validate(s);
  return s;
}

/// Rows [first, first + count) of the global batch; not every label counts, and not evenly.
Batch rows_of(const ContextPtr& context, std::int64_t step, std::int64_t first, std::int64_t count,
              std::int64_t seq) {
  std::vector<std::int64_t> inputs;
  std::vector<std::int64_t> labels;
  for (std::int64_t r = first; r < first + count; ++r) {
    for (std::int64_t t = 0; t < seq; ++t) {
      inputs.push_back((r * 5 + t * 3 + step) % 29);
      labels.push_back(t <= 2 * r + 1 ? (r + t * 7 + step) % 29 : -100);
    }
  }
  return {Tensor::from_vector(context, {count, seq}, inputs),
          Tensor::from_vector(context, {count, seq}, labels)};
}

/// What rank 0 saw in each step, and the gradients of replicated parameters on every rank.
struct Trace {
  std::vector<double> losses;
  std::vector<double> norms;
  std::vector<std::vector<double>> replicated;
  std::vector<std::vector<float>> scales;  ///< of delayed scaling, of every layer, a rank each
};

/// Scale of x of each linear layer: the first float of its state, behind a tag of four bytes.
std::vector<float> scales_of(const GPTModel& model) {
  std::vector<float> scales;
  for (const auto& [path, module] : model.named_modules()) {
    const auto* layer = dynamic_cast<const modules::Linear*>(module.get());
    if (layer == nullptr || !layer->weight.defined()) continue;
    const std::vector<std::uint8_t> state = layer->get_extra_state().to_vector<std::uint8_t>();
    if (state.size() < 8) continue;
    float scale = 0.0f;
    std::memcpy(&scale, state.data() + 4, sizeof scale);
    scales.push_back(scale);
  }
  return scales;
}

void train_rank(const TrainSettings& settings, int steps, Trace& trace, std::mutex& mutex) {
  model_parallel_cuda_manual_seed(11);
  const auto model = make_model(settings, make_transformer_config(settings));
  Optimizer optimizer(*model, Optimizer::Options{});
  TrainingStep step(*model, optimizer);
  const auto groups = ProcessGroupCollection::use_mpu_process_groups();
  std::vector<double> replicated;
  for (int i = 1; i <= steps; ++i) {
    const Batch batch =
        rows_of(default_context(), i, groups->dp->rank() * settings.micro_batch_size,
                settings.micro_batch_size, settings.seq_length);
    const StepResult result = step.run({batch}, 1e-2, i);
    if (i == 1) {
      for (const auto& [name, parameter] : model->named_parameters()) {
        if (parameter->tensor_model_parallel) continue;
        for (const double value : values_of(parameter->main_grad())) replicated.push_back(value);
      }
    }
    if (current_rank_state().rank() != 0) continue;
    trace.losses.push_back(values_of(result.loss_sum)[0] / static_cast<double>(result.num_tokens));
    trace.norms.push_back(values_of(result.clip.norm)[0]);
  }
  const std::lock_guard<std::mutex> lock(mutex);
  trace.scales.push_back(scales_of(*model));
  trace.replicated.push_back(std::move(replicated));
}

Trace train(const Plan& plan, int steps = 5) {
  const TrainSettings settings = settings_of(plan);
  Trace trace;
  std::mutex mutex;
  parallel::RunRanksOptions options;
  options.make_context = [](int) { return testing::poisoned_context(); };
  parallel::run_ranks(
      static_cast<int>(plan.ranks),
      [&] {
        initialize_model_parallel(rank_grid(settings).sizes());
        train_rank(settings, steps, trace, mutex);
      },
      options);
  return trace;
}

/// The cross-split bounds: 1e-4 relative under fp32, 2e-3 under bf16. A gradient norm in bf16 sums
/// thousands of values that were each rounded to 2^-8.
void expect_as_one_rank(Plan plan, double bound) {
  const Trace several = train(plan);
  plan.ranks = plan.tensor = 1;
  plan.sequence = false;
  const Trace one = train(plan);
  EXPECT_TRUE(testing::close(one.losses, several.losses, 0.0, bound));
  EXPECT_TRUE(testing::close(one.norms, several.norms, 0.0, 10 * bound));
}

// labels: P27 P06 P09 models.GPTModel
TEST(SeveralRanks, TensorParallelTrainsAsOneRank) {
  for (const std::string topology : {"transformer_engine", "local"}) {
    for (const std::int64_t tensor : {2, 4}) {
      for (const bool sequence : {false, true}) {
        SCOPED_TRACE(topology + " " + std::to_string(tensor) + (sequence ? " sequence" : ""));
        Plan plan(tensor, tensor, sequence);
        plan.topology = topology;
        expect_as_one_rank(plan, 1e-4);
      }
    }
  }
}

// labels: P27 models.GPTModel
TEST(SeveralRanks, TensorParallelInBfloat16TrainsAsOneRank) {
  for (const bool sequence : {false, true}) {
    Plan plan(2, 2, sequence);
    plan.precision = "bf16";
    expect_as_one_rank(plan, 2e-3);
  }
}

// labels: P06 models.SelfAttention train.finalize_model_grads
TEST(SeveralRanks, NormsOfSplitHeadsGetTheGradientOfAllHeads) {
  for (const bool sequence : {false, true}) {
    Plan plan(2, 2, sequence);
    plan.topology = "local";
    plan.qk_layernorm = true;
    expect_as_one_rank(plan, 1e-4);
  }
}

// labels: P06 train.finalize_model_grads
TEST(SeveralRanks, ReplicatedGradientsAreEqualOnAllRanksAndThoseOfOneRank) {
  const Trace one = train(Plan(), 1);
  for (const bool sequence : {false, true}) {
    const Trace several = train(Plan(4, 2, sequence), 1);
    ASSERT_EQ(several.replicated.size(), 4u);
    ASSERT_FALSE(several.replicated[0].empty());
    for (const auto& gradients : several.replicated) EXPECT_EQ(gradients, several.replicated[0]);
    EXPECT_TRUE(testing::close(one.replicated[0], several.replicated[0], 1e-6, 1e-5));
  }
}

// labels: T21 train.finalize_model_grads
TEST(SeveralRanks, DataParallelTrainsAsOneRankThoughTheShareOfCountedLabelsIsUneven) {
  expect_as_one_rank(Plan(2, 1), 1e-4);
  expect_as_one_rank(Plan(4, 2, true), 1e-4);
}

// labels: train.TrainingStep modules.OperandQuantizer
TEST(SeveralRanks, DelayedScalesAreEqualOnAllRanksAndThoseOfOneRank) {
  Plan plan(4, 2, true);
  plan.recipe = "fp8_delayed";
  const Trace several = train(plan, 1);
  Plan alone;
  alone.recipe = "fp8_delayed";
  const Trace one = train(alone, 1);
  ASSERT_EQ(several.scales.size(), 4u);
  ASSERT_EQ(several.scales[0].size(), 8u);  // four layers in each block
  for (const auto& scales : several.scales) EXPECT_EQ(scales, several.scales[0]);
  // Products of codes are summed in another order, and a code may fall to its neighbour: 2^-4.
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_NEAR(several.scales[0][i], one.scales[0][i], one.scales[0][i] / 16.0f);
  }
}

// labels: P01 P07 P19 train.parallel_settings
TEST(SeveralRanks, SizesThatDoNotFitAreRefusedWithTheNextOnesThatDo) {
  const auto refused = [](const auto& change, const std::vector<std::string>& phrases) {
    TrainSettings s = settings_of(Plan(2, 2));
    change(s);
    return throws<ValueError>([&] { validate(s); }, phrases);
  };
  EXPECT_TRUE(refused([](TrainSettings& s) { s.ranks = 1; },
                      {"world size 1 is not divisible by TP x PP x CP = 2"}));
  EXPECT_TRUE(refused(
      [](TrainSettings& s) {
        s.sequence_parallel = true;
        s.seq_length = 129;
      },
      {"--seq-length 129", "--tensor-model-parallel-size 2", "130 or 128"}));
  EXPECT_TRUE(refused([](TrainSettings& s) { s.seq_length = 129; },
                      {"--max-position-embeddings 129", "130"}));
  EXPECT_TRUE(refused([](TrainSettings& s) { s.ffn_hidden_size = 33; },
                      {"--ffn-hidden-size 33", "34 or 32"}));
  EXPECT_TRUE(refused([](TrainSettings& s) { s.ranks = 0; }, {"--ranks is 0"}));
  EXPECT_TRUE(refused([](TrainSettings& s) { s.ranks = s.tensor_model_parallel_size = 3; },
                      {"--num-attention-heads 4", "3"}));
}

// labels: P09 train.parallel_settings
TEST(SeveralRanks, VocabularyIsRoundedUpToWholeRowsOfEachRank) {
  TrainSettings s;
  s.vocab_size = 50257;
  EXPECT_EQ(padded_vocab_size(s), 50304);
  s.tensor_model_parallel_size = 2;
  EXPECT_EQ(padded_vocab_size(s), 50432);
  s.make_vocab_size_divisible_by = 1;
  EXPECT_EQ(padded_vocab_size(s), 50258);
}

// labels: train.parallel_settings
TEST(SeveralRanks, WhatNeedsOneRankIsRefusedByName) {
  TrainSettings s = settings_of(Plan(2, 2));
  s.save_interval = 5;
  EXPECT_TRUE(throws<NotImplementedError>([&] { validate(s); }, {"--ranks 2", "--save-interval"}));
  s.save_interval = std::nullopt;
  s.resume = true;
  EXPECT_TRUE(throws<NotImplementedError>([&] { validate(s); }, {"--resume"}));
  s.resume = false;
  s.backend = "cuda";
  EXPECT_TRUE(throws<NotImplementedError>([&] { validate(s); }, {"NCCL"}));
}

}  // namespace
}  // namespace kitchen::train
