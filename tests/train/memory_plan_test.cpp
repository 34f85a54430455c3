#include "kitchen/train/memory_plan.h"

#include "kitchen/base/logger.h"
#include "kitchen/base/rank_state.h"
#include "train/tiny_run.h"

#include <gtest/gtest.h>

#include <string>

namespace kitchen::train {
namespace {

using testing::TinyRun;

struct Case {
  const char* name;
  void (*change)(TrainSettings&);
};

const Case kCases[] = {{"bf16", [](TrainSettings&) {}},
                       {"fp32_untied",
                        [](TrainSettings& s) {
                          s.precision = "fp32";
                          s.untie_embeddings_and_output_weights = true;
                        }},
                       {"recipe_1_sdpa",
                        [](TrainSettings& s) {
                          s.kitchen_recipe_number = 1;
                          s.use_kitchen_attention = true;
                        }},
                       {"recipe_2_fa",
                        [](TrainSettings& s) {
                          s.kitchen_recipe_number = 2;
                          s.use_kitchen_attention = true;
                          s.kitchen_attention_backend = "fa";
                        }},
                       {"recipe_2_without_weight_cache",
                        [](TrainSettings& s) {
                          s.kitchen_recipe_number = 2;
                          s.disable_parameter_transpose_cache = true;
                        }},
                       {"mxfp8", [](TrainSettings& s) { s.kitchen_recipe_name = "mxfp8"; }},
                       {"accumulation_dropout",
                        [](TrainSettings& s) {
                          s.global_batch_size = 8;
                          s.hidden_dropout = 0.1;
                        }},
                       {"recompute",
                        [](TrainSettings& s) {
                          s.seq_length = 64;
                          s.recompute_granularity = "selective";
                        }},
                       {"rmsnorm_swiglu_rope_grouped", [](TrainSettings& s) {
                          s.normalization = "RMSNorm";
                          s.swiglu = true;
                          s.disable_bias_linear = true;
                          s.position_embedding_type = "rope";
                          s.group_query_attention = true;
                          s.num_query_groups = 1;
                        }}};

class MemoryPlanOf : public ::testing::TestWithParam<Case> {};

// labels: train.plan_memory ruling-6.36
TEST_P(MemoryPlanOf, IsWithinTenPercentOfTheAllocatorsPeak) {
  TinyRun run;
  run.settings.train_iters = 3;
  run.settings.num_layers = 2;
  GetParam().change(run.settings);
  run.run();
  ASSERT_GT(run.peak_bytes, 0);
  const double ratio = static_cast<double>(run.planned_bytes) / static_cast<double>(run.peak_bytes);
  RecordProperty("ratio", std::to_string(ratio));
  EXPECT_GE(ratio, 0.9);
  EXPECT_LE(ratio, 1.1);
}

INSTANTIATE_TEST_SUITE_P(Settings, MemoryPlanOf, ::testing::ValuesIn(kCases),
                         [](const auto& entry) { return std::string(entry.param.name); });

// labels: train.plan_memory
TEST(MemoryPlan, PartsAreThoseOfMixedPrecisionAdam) {
  TinyRun run;
  TrainSettings settings = run.settings;
  const ContextPtr context = reference::make_cpu_context();
  const RankState& state = current_rank_state();
  const MemoryPlan bf16 = plan_memory(settings, context);
  settings.precision = "fp32";
  const MemoryPlan fp32 = plan_memory(settings, context);
  // Bytes a parameter: bf16 2 + 4 + (4 main + 8 moments), fp32 4 + 4 + 8; vectors are padded to 64
  // bytes.
  const auto parameters = static_cast<double>(bf16.gradients) / 4.0;
  EXPECT_NEAR(static_cast<double>(bf16.parameters), 2 * parameters, 0.05 * parameters);
  EXPECT_NEAR(static_cast<double>(bf16.optimizer), 12 * parameters, 0.2 * parameters);
  EXPECT_NEAR(static_cast<double>(fp32.parameters), 4 * parameters, 0.05 * parameters);
  EXPECT_NEAR(static_cast<double>(fp32.optimizer), 8 * parameters, 0.2 * parameters);
  EXPECT_EQ(bf16.gradients, fp32.gradients);
  EXPECT_GT(bf16.activations(), 0);
  EXPECT_TRUE(testing::mentions(to_string(bf16), "activations"));
  // The dry run allocates nothing on the device that it plans for, and leaves this rank's state
  // alone.
  EXPECT_EQ(context->allocator()->stats().num_allocations, 0);
  EXPECT_EQ(&current_rank_state(), &state);
}

// labels: train.plan_memory
TEST(MemoryPlan, TheDryRunRepeatsNoWarning) {
  TinyRun run;
  run.settings.kitchen_recipe_number = 2;
  const LogCapture log;
  (void)plan_memory(run.settings, reference::make_cpu_context());
  EXPECT_EQ(log.text(), "");
  run.run();
  EXPECT_EQ(log.count(LogLevel::warning, "Kitchen attention is off"), 1);
}

// labels: train.plan_memory autograd.recompute
TEST(MemoryPlan, RecomputeAndFlashAttentionSaveTheProbabilities) {
  TinyRun run;
  TrainSettings settings = run.settings;
  settings.num_layers = 4;
  settings.seq_length = 128;
  settings.kitchen_recipe_number = 1;
  settings.use_kitchen_attention = true;
  const ContextPtr context = reference::make_cpu_context();
  const std::int64_t plain = plan_memory(settings, context).peak;
  settings.recompute_granularity = "selective";
  const std::int64_t recomputed = plan_memory(settings, context).peak;
  settings.recompute_granularity = std::nullopt;
  settings.kitchen_attention_backend = "fa";
  const std::int64_t flash = plan_memory(settings, context).peak;
  // bf16 probabilities [b·np, s, s] of three of the four layers; one layer's are there while it
  // runs again.
  const std::int64_t probabilities = 3 * 4 * 2 * 128 * 128 * 2;
  EXPECT_LT(recomputed, plain - probabilities * 9 / 10);
  EXPECT_LT(flash, plain - probabilities * 9 / 10);
}

}  // namespace
}  // namespace kitchen::train
