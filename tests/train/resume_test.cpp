#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/train/training_state.h"
#include "support/expect_error.h"
#include "train/tiny_run.h"

#include <gtest/gtest.h>

#include <limits>

namespace kitchen::train {
namespace {

using testing::throws;
using testing::TinyRun;

struct Case {
  const char* name;
  void (*change)(TrainSettings&);
};

const Case kCases[] = {{"bf16_dropout",
                        [](TrainSettings& s) {
                          s.hidden_dropout = 0.1;
                          s.attention_dropout = 0.1;
                        }},
                       {"fp8_current_scaling_dropout",
                        [](TrainSettings& s) {
                          s.kitchen_recipe_number = 2;
                          s.hidden_dropout = 0.1;
                          s.attention_dropout = 0.1;
                          s.use_kitchen_attention = true;
                        }},
                       {"mxfp8_by_name", [](TrainSettings& s) { s.kitchen_recipe_name = "mxfp8"; }},
                       {"nvfp4", [](TrainSettings& s) { s.kitchen_recipe_name = "nvfp4_rht"; }},
                       {"fp8_delayed_accumulation",
                        [](TrainSettings& s) {
                          s.kitchen_recipe_name = "fp8_delayed";
                          s.global_batch_size = 8;
                        }},
                       {"nvfp4_stochastic",
                        [](TrainSettings& s) { s.kitchen_recipe_name = "nvfp4_rht_2d_sr"; }},
                       {"accumulation",
                        [](TrainSettings& s) {
                          s.global_batch_size = 12;
                          s.hidden_dropout = 0.1;
                        }},
                       {"fp32_untied_rope_recompute", [](TrainSettings& s) {
                          s.precision = "fp32";
                          s.untie_embeddings_and_output_weights = true;
                          s.position_embedding_type = "rope";
                          s.recompute_granularity = "selective";
                          s.attention_dropout = 0.1;
                        }}};

class Resume : public ::testing::TestWithParam<Case> {};

// labels: train.Trainer K09 T19
TEST_P(Resume, StoppedRunGivesEveryBitOfTheStraightOne) {
  TinyRun straight;
  TinyRun stopped;
  for (TinyRun* run : {&straight, &stopped}) {
    GetParam().change(run->settings);
    run->settings.log_interval = 5;  // the stop lies between two log lines
  }
  EXPECT_EQ(straight.run(), RunEnd::finished);
  stopped.run_in_two_parts(7);
  EXPECT_EQ(straight.metrics(), stopped.metrics());
  EXPECT_TRUE(straight.tensors(20) == stopped.tensors(20));
  EXPECT_EQ(
      LoadedCheckpoint::open(checkpoint_folder(straight.path("checkpoint"), 20)).training_state(),
      LoadedCheckpoint::open(checkpoint_folder(stopped.path("checkpoint"), 20)).training_state());
}

INSTANTIATE_TEST_SUITE_P(Settings, Resume, ::testing::ValuesIn(kCases),
                         [](const auto& entry) { return std::string(entry.param.name); });

// labels: train.Trainer train.quantizer_states K09
TEST(ResumeWithHistory, FortyStepsEqualTwentyAndTwentyMore) {
  TinyRun straight;
  TinyRun stopped;
  for (TinyRun* run : {&straight, &stopped}) {
    run->settings.kitchen_recipe_name = "fp8_delayed";
    run->settings.train_iters = 40;
    run->settings.hidden_dropout = 0.1;
    run->settings.attention_dropout = 0.1;
  }
  straight.run();
  stopped.run_in_two_parts(20);
  EXPECT_EQ(straight.metrics(), stopped.metrics());
  EXPECT_TRUE(straight.tensors(40) == stopped.tensors(40));
}

// labels: train.quantizer_states K21
TEST(ResumeWithHistory, CheckpointWithoutTheStateIsRefused) {
  TinyRun run;
  run.settings.kitchen_recipe_name = "fp8_delayed";
  run.settings.exit_interval = 3;
  run.run();
  const std::string folder = checkpoint_folder(run.path("checkpoint"), 3);
  const LoadedCheckpoint saved = LoadedCheckpoint::open(folder);
  CheckpointTensors without;
  const ContextPtr context = reference::make_cpu_context();
  for (const CheckpointPiece& piece : saved.index().pieces) {
    if (piece.name.find("_extra_state") != std::string::npos) continue;
    std::vector<NamedTensor>& part = piece.part == "model" ? without.model : without.optimizer;
    part.push_back({piece.name, Tensor::empty(context, piece.shape, piece.dtype)});
  }
  saved.load_into(without, /*allow_unused=*/true);
  save_checkpoint(run.path("checkpoint"), without,
                  {4, saved.training_state(), saved.index().recipe, saved.config()});
  run.settings.resume = true;
  EXPECT_TRUE(throws<ValueError>([&] { run.run(); },
                                 {"_extra_state", "is missing", "state of its quantizers",
                                  "new run in another --run-dir"}));
}

// labels: train.Trainer K01 K05 K09
TEST(ResumeAfterDamage, FallsBackToTheCheckpointBeforeAndGoesOnIdentically) {
  TinyRun straight;
  TinyRun run;
  for (TinyRun* r : {&straight, &run}) r->settings.hidden_dropout = 0.1;
  straight.run();
  run.settings.save_interval = 5;
  run.settings.exit_interval = 15;
  EXPECT_EQ(run.run(), RunEnd::exit_interval);
  EXPECT_EQ(run.lines().back()["step"], 15);
  const std::string file = checkpoint_folder(run.path("checkpoint"), 15) + "/model.safetensors";
  const std::string bytes = testing::slurp(file);
  testing::spit(file, bytes.substr(0, bytes.size() - 1));
  const LogCapture log;
  run.resume();
  EXPECT_EQ(log.count(LogLevel::warning, "iter_0000015"), 1);
  EXPECT_TRUE(testing::mentions(run.output, "resumed    at step 10"));
  EXPECT_EQ(run.metrics(), straight.metrics());
  EXPECT_TRUE(run.tensors(20) == straight.tensors(20));
}

// labels: train.Trainer resume_differences
TEST(ResumeRefusal, AllDifferencesAreInOneMessage) {
  TinyRun run;
  run.settings.kitchen_config_file = run.folder() / "recipe.yaml";
  const auto recipe = [&](int number) {
    testing::spit(*run.settings.kitchen_config_file,
                  "configs:\n  a: {kitchen_config_type: QLinearParams, recipe_idx: " +
                      std::to_string(number) +
                      "}\nmatchers:\n  m: {type: glob, pattern: '*', config: a, enabled: true}\n");
  };
  recipe(2);
  run.settings.exit_interval = 3;
  run.run();
  const std::string metrics = testing::slurp(run.path("metrics.jsonl"));
  run.settings.resume = true;
  run.settings.lr = 5e-3;
  run.settings.hidden_dropout = 0.1;
  run.settings.train_iters = 30;
  run.settings.log_interval = 7;  // may change
  recipe(1);
  testing::spit(run.settings.data, testing::sample_text(8001));
  EXPECT_TRUE(throws<ValueError>(
      [&] { run.run(); },
      {"--lr: 0.01 in the run, 0.005 asked for", "--hidden-dropout: 0.0 in the run",
       "--train-iters: 20 in the run, 30 asked for", "the recipe", "text.txt is not the text",
       "new run in another --run-dir"}));
  EXPECT_EQ(testing::slurp(run.path("metrics.jsonl")), metrics);

  run.settings.lr = 1e-2;
  run.settings.hidden_dropout = 0.0;
  run.settings.train_iters = 20;
  recipe(2);
  std::filesystem::remove(run.settings.data);
  run.settings.data = run.folder() / "moved.txt";  // a moved file is the same file
  testing::spit(run.settings.data, testing::sample_text(8000));
  run.resume();
}

// labels: train.Trainer
TEST(ResumeRefusal, RunWithoutACheckpointTellsSo) {
  TinyRun run;
  run.settings.train_iters = 2;
  run.run();
  std::filesystem::remove_all(run.path("checkpoint"));
  run.settings.resume = true;
  EXPECT_TRUE(throws<ValueError>([&] { run.run(); }, {"holds no checkpoint to resume from"}));
}

// labels: train.TrainingState K11
TEST(TrainingState, EveryNumberComesBackBitForBit) {
  TrainingState state;
  state.consumed_samples = 1;
  state.consumed_tokens = (std::int64_t{1} << 62) + 1;
  state.nan_iterations = 3;
  state.interval_tokens = 5;
  state.data_checksum = "abc";
  state.default_rng = {~std::uint64_t{0}, 7};
  state.tracker_rng = {{"a", {1, 2}}, {"b", {3, ~std::uint64_t{0} - 1}}};
  for (const double loss : {0.1 + 0.2, -0.0, std::numeric_limits<double>::quiet_NaN()}) {
    state.interval_loss = loss;
    const TrainingState back = training_state_from_json(to_json(state));
    EXPECT_EQ(to_json(back), to_json(state));
    EXPECT_EQ(std::isnan(back.interval_loss), std::isnan(loss));
    EXPECT_EQ(std::signbit(back.interval_loss), std::signbit(loss));
    EXPECT_EQ(back.consumed_tokens, state.consumed_tokens);
    EXPECT_EQ(back.default_rng, state.default_rng);
    EXPECT_EQ(back.tracker_rng, state.tracker_rng);
  }
  EXPECT_TRUE(
      throws<ValueError>([] { (void)training_state_from_json("{}"); }, {"consumed_samples"}));
  EXPECT_TRUE(throws<ValueError>([] { (void)training_state_from_json("{"); }, {"training state"}));
}

}  // namespace
}  // namespace kitchen::train
