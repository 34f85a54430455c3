#include "kitchen/train/trainer.h"

#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/recipes/predefined.h"
#include "support/expect_error.h"
#include "train/tiny_run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

namespace kitchen::train {
namespace {

using testing::throws;
using testing::TinyRun;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

void spoil_gradient(Trainer& trainer) {
  trainer.model().named_parameters()[3].second->main_grad().data<float>()[1] = kNaN;
}

// labels: train.Trainer T19
TEST(Trainer, EqualSettingsGiveEqualMetricsAndWeights) {
  TinyRun first;
  TinyRun second;
  TinyRun other;
  for (TinyRun* run : {&first, &second, &other}) {
    run->settings.kitchen_recipe_number = 2;
    run->settings.hidden_dropout = 0.1;
    run->settings.train_iters = 10;
  }
  other.settings.seed = 5;
  for (TinyRun* run : {&first, &second, &other}) EXPECT_EQ(run->run(), RunEnd::finished);
  EXPECT_EQ(first.metrics(), second.metrics());
  EXPECT_EQ(first.tensors(10), second.tensors(10));
  EXPECT_NE(first.metrics(), other.metrics());
}

// labels: train.Trainer ruling-6.11
TEST(Trainer, NumberOfThreadsDoesNotChangeAnyBit) {
  for (const char* recipe : {"", "fp8_cs", "mxfp8", "fp8_delayed", "nvfp4_rht_2d_sr"}) {
    std::vector<std::string> metrics;
    std::vector<std::string> tensors;
    for (const int threads : {1, 2, 3}) {
      reference::set_num_threads(threads);
      TinyRun run;
      // Large enough that every kernel splits its work.
      run.settings.hidden_size = 96;
      run.settings.num_attention_heads = 3;
      run.settings.seq_length = 32;
      run.settings.micro_batch_size = 16;
      run.settings.global_batch_size = 16;
      run.settings.train_iters = 3;
      run.settings.attention_dropout = 0.1;
      run.settings.precision = *recipe == '\0' ? "fp32" : "bf16";
      testing::spit(run.settings.data, testing::sample_text(20000));
      if (*recipe != '\0') run.settings.kitchen_recipe_name = recipe;
      EXPECT_EQ(run.run(), RunEnd::finished);
      metrics.push_back(run.metrics());
      tensors.push_back(run.tensors(3));
    }
    reference::set_num_threads(2);
    EXPECT_EQ(metrics[0], metrics[1]) << recipe;
    EXPECT_EQ(metrics[0], metrics[2]) << recipe;
    EXPECT_TRUE(tensors[0] == tensors[1]) << recipe;
    EXPECT_TRUE(tensors[0] == tensors[2]) << recipe;
  }
}

// labels: train.Trainer T01
TEST(Trainer, StepWithANaNGradientIsSkippedCountedAndLoggedOnce) {
  TinyRun run;
  run.settings.train_iters = 8;
  run.settings.log_interval = 4;
  run.settings.eval_interval = 5;  // step 5 is evaluated, skipped and logged: one line
  const LogCapture log;
  const auto weights = [](Trainer& trainer) {
    return trainer.model().embedding->word_embeddings->weight.detach().to_vector<std::uint16_t>();
  };
  std::map<std::int64_t, std::vector<std::uint16_t>> before;
  EXPECT_EQ(run.run([&](Trainer& trainer, std::int64_t step) {
    before[step] = weights(trainer);
    if (step == 5 || step == 6) spoil_gradient(trainer);
  }),
            RunEnd::finished);
  EXPECT_EQ(before[5], before[6]);
  EXPECT_EQ(before[6], before[7]);
  EXPECT_NE(before[7], before[8]);
  for (const char* line : {"step 5: the gradient norm is nan; the step is skipped (1 so far)",
                           "step 6: the gradient norm is nan; the step is skipped (2 so far)"}) {
    EXPECT_EQ(log.count(LogLevel::warning, line), 1) << line;
  }
  const auto lines = run.lines();
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0]["step"], 4);
  EXPECT_EQ(lines[0]["nan_iterations"], 0);
  EXPECT_EQ(lines[1]["step"], 5);
  EXPECT_EQ(lines[1]["grad_norm"], "nan");
  EXPECT_EQ(lines[1]["nan_iterations"], 1);
  EXPECT_GT(lines[1]["train_loss"], 1.0);
  EXPECT_GT(lines[1]["val_loss"], 1.0);
  EXPECT_EQ(lines[2]["step"], 6);
  EXPECT_EQ(lines[2]["grad_norm"], "nan");
  EXPECT_EQ(lines[3]["step"], 8);
  EXPECT_EQ(lines[3]["nan_iterations"], 2);
  // Skipped steps are no updates: step 8 is the sixth one and has its rate.
  const LrSchedule schedule({run.settings.lr, run.settings.min_lr, run.settings.lr_warmup_iters, 8});
  EXPECT_EQ(lines[3]["lr"].get<double>(), schedule.at(5));
  EXPECT_TRUE(std::filesystem::exists(run.path("report.html")));
}

// labels: train.Trainer T01 T03
TEST(Trainer, StrictFlagStopsAtANaNAndTheLastGoodCheckpointContinues) {
  TinyRun straight;
  straight.run();
  TinyRun run;
  run.settings.save_interval = 10;
  run.settings.keep_checkpoints = 2;
  run.settings.check_for_nan_in_loss_and_grad = true;
  EXPECT_TRUE(throws<RuntimeError>(
      [&] {
        run.run([](Trainer& trainer, std::int64_t step) {
          if (step == 15) spoil_gradient(trainer);
        });
      },
      {"step 15", "the gradient norm nan", "the weights were not changed", run.path("checkpoint"),
       "--check-for-nan-in-loss-and-grad"}));
  EXPECT_EQ(run.lines().back()["step"], 15);
  EXPECT_EQ(run.lines().back()["grad_norm"], "nan");
  EXPECT_EQ(checkpoint_steps(run.path("checkpoint")), (std::vector<std::int64_t>{10}));
  run.resume();
  EXPECT_EQ(run.metrics(), straight.metrics());
  EXPECT_EQ(run.tensors(20), straight.tensors(20));
}

// labels: train.Trainer T03
TEST(Trainer, WeightsThatAreNotFiniteAreNeverSaved) {
  TinyRun run;
  run.settings.precision = "fp32";
  run.settings.save_interval = 10;
  EXPECT_TRUE(throws<RuntimeError>(
      [&] {
        run.run([](Trainer& trainer, std::int64_t step) {
          if (step != 15) return;
          trainer.model().decoder->final_layernorm->state_dict().at("bias").data<float>()[0] = kNaN;
        });
      },
      {"step 20", "the weights are not finite", "no checkpoint was written",
       run.path("checkpoint")}));
  EXPECT_EQ(checkpoint_steps(run.path("checkpoint")), (std::vector<std::int64_t>{10}));
  EXPECT_EQ(run.lines().back()["nan_iterations"], 5);  // steps 16 to 20
  EXPECT_EQ(run.lines().back()["train_loss"], "nan");
}

// labels: train.Trainer
TEST(Trainer, StrictFlagAlsoStopsAtALossThatIsNotFinite) {
  TinyRun run;
  run.settings.precision = "fp32";
  run.settings.check_for_nan_in_loss_and_grad = true;
  EXPECT_TRUE(throws<RuntimeError>(
      [&] {
        run.run([](Trainer& trainer, std::int64_t step) {
          // The loss of step 3 is computed with it, its gradient is repaired here.
          const Tensor bias = trainer.model().decoder->final_layernorm->state_dict().at("bias");
          if (step == 2) bias.data<float>()[0] = kNaN;
          if (step != 3) return;
          bias.data<float>()[0] = 0.0f;
          for (const auto& [name, parameter] : trainer.model().named_parameters()) {
            float* gradient = parameter->main_grad().data<float>();
            std::fill(gradient, gradient + parameter->numel(), 0.0f);
          }
        });
      },
      {"step 3", "the summed loss is nan", "the weights are not saved"}));
  EXPECT_TRUE(checkpoint_steps(run.path("checkpoint")).empty());
}

// labels: train.QuantizationMonitor N06
TEST(Trainer, EvaluatedStepsCountQuantizedElementsThatWentWrong) {
  TinyRun run;
  run.settings.kitchen_recipe_name = "mxfp8";
  run.settings.precision = "fp32";  // the parameters are the main weights themselves
  run.settings.train_iters = 4;
  run.settings.eval_interval = 1;
  const LogCapture log;
  run.run([](Trainer& trainer, std::int64_t step) {
    const Tensor gamma =
        trainer.model().decoder->layers[0]->self_attention->linear_qkv->state_dict().at(
            "layer_norm_weight");
    // Step 3 multiplies by it; then it is repaired, since such weights are not saved.
    if (step == 2) gamma.data<float>()[0] = std::numeric_limits<float>::infinity();
    if (step == 3) gamma.data<float>()[0] = 1.0f;
  });
  const auto lines = run.lines();
  ASSERT_EQ(lines.size(), 4u);
  // Four linear layers, each with six uses of its operands in one micro-batch of 4·16 tokens; h
  // = 32.
  const std::int64_t tokens = 64;
  const std::int64_t h = 32;
  const std::int64_t features = (h + 3 * h) + (h + h) + (h + 4 * h) + (4 * h + h);
  const std::int64_t weights = 3 * h * h + h * h + 4 * h * h + 4 * h * h;
  EXPECT_EQ(lines[0]["quantized_elements"], 2 * (tokens * features + weights));
  EXPECT_EQ(lines[1]["quantized_elements"], lines[0]["quantized_elements"]);
  EXPECT_EQ(lines[0]["quantized_non_finite"], 0);
  EXPECT_TRUE(lines[0]["quantized_saturated"].is_number_integer());
  EXPECT_TRUE(lines[0]["quantized_underflowed"].is_number_integer());
  EXPECT_GE(lines[2]["quantized_non_finite"], tokens);
  EXPECT_EQ(log.count(LogLevel::warning, "are NaN or Inf before quantization"), 1);
  EXPECT_EQ(log.count(LogLevel::warning, "decoder.layers.0.self_attention.linear_qkv: 64 of 2048 elements of x"),
            1);
  std::int64_t non_finite = 0;
  for (const auto& row : lines[2]["quantization"]) {
    non_finite += row["non_finite"].get<std::int64_t>();
    const bool is_spoiled = row["module"] == "decoder.layers.0.self_attention.linear_qkv";
    if (is_spoiled && row["operand"] == "x") {
      EXPECT_EQ(row["non_finite"], tokens) << row;
    }
  }
  EXPECT_EQ(lines[2]["quantization"].size(), 24u);
  EXPECT_EQ(lines[2]["quantized_non_finite"], non_finite);
  const auto list = nlohmann::json::parse(testing::slurp(run.path("quantization.json")));
  EXPECT_EQ(list.size(), 24u);

  TinyRun plain;
  plain.settings.train_iters = 1;
  plain.run();
  EXPECT_FALSE(plain.lines()[0].contains("quantized_elements"));
  EXPECT_FALSE(std::filesystem::exists(plain.path("quantization.json")));
}

struct SmokeCase {
  std::int64_t recipe;
  const char* attention;
};

// labels: train.Trainer KitchenDotProductAttention KitchenFlashAttention QLinearParams
TEST(Trainer, LossFallsUnderRecipesAndAttentions) {
  double plain_loss = 0.0;
  for (const SmokeCase& c : {SmokeCase{1, "sdpa"}, {1, "fa"}, {2, "sdpa"}, {2, "fa"}}) {
    TinyRun run;
    run.settings.train_iters = 40;
    run.settings.kitchen_recipe_number = c.recipe;
    run.settings.use_kitchen_attention = true;
    run.settings.kitchen_attention_backend = c.attention;
    EXPECT_EQ(run.run(), RunEnd::finished);
    const double first = run.lines().front()["train_loss"];
    const double last = run.lines().back()["val_loss"];
    EXPECT_NEAR(first, std::log(128.0), 0.1) << c.attention;  // small weights know nothing
    EXPECT_LT(last, 3.0) << c.recipe << " " << c.attention;   // letters of the text alone give 2.8
    if (c.recipe == 1 && std::string(c.attention) == "sdpa") plain_loss = last;
    // The recipes start from the same weights and read the same batches.
    EXPECT_NEAR(last, plain_loss, 0.05) << c.recipe << " " << c.attention;
  }
}

// labels: train.Trainer QFlashAttentionParams QAttentionParams recipe_1 recipe_6001
TEST(Trainer, LossFallsUnderEveryAttentionRecipe) {
  struct Case {
    std::string part;
    const char* backend;
  };
  std::vector<Case> cases;
  for (const auto& recipe : predefined_flash_recipes()) {
    cases.push_back({"QFlashAttentionParams, recipe_name: " + recipe->name, "fa"});
  }
  for (const auto& recipe : predefined_attention_recipes()) {
    cases.push_back({"QAttentionRecipe, recipe: " + recipe->name, "sdpa"});
  }
  for (const Case& c : cases) {
    SCOPED_TRACE(c.part);
    TinyRun run;
    run.settings.train_iters = 40;
    run.settings.use_kitchen_attention = true;
    run.settings.kitchen_attention_backend = c.backend;
    const std::string file = run.folder() / "recipe.yaml";
    testing::spit(file, "configs:\n  both:\n    kitchen_config_type: CompoundParams\n    configs:\n"
                        "      - {kitchen_config_type: QLinearParams, recipe_idx: 1}\n"
                        "      - {kitchen_config_type: " + c.part + "}\n"
                        "matchers:\n  all: {type: glob, pattern: \"*\", config: both, enabled: true}\n");
    run.settings.kitchen_config_file = file;
    EXPECT_EQ(run.run(), RunEnd::finished);
    EXPECT_NEAR(run.lines().front()["train_loss"].get<double>(), std::log(128.0), 0.1);
    EXPECT_LT(run.lines().back()["val_loss"].get<double>(), 3.0);  // letters alone give 2.8
    EXPECT_LE(run.peak_bytes, run.planned_bytes * 11 / 10);
  }
}

// labels: train.Trainer
TEST(Trainer, FinishedRunCanBeResumedToWriteItsReportAgain) {
  TinyRun run;
  run.settings.train_iters = 3;
  run.run();
  const std::string metrics = testing::slurp(run.path("metrics.jsonl"));
  std::filesystem::remove(run.path("report.html"));
  run.resume();
  EXPECT_EQ(testing::slurp(run.path("metrics.jsonl")), metrics);
  EXPECT_TRUE(std::filesystem::exists(run.path("report.html")));
}

// labels: train.Trainer
TEST(Trainer, FolderHoldsWhatTheRunPromises) {
  TinyRun run;
  run.settings.train_iters = 2;
  run.settings.sample_tokens = 5;
  run.run();
  for (const char* name :
       {"config.json", "metrics.jsonl", "op_times.json", "samples.txt", "report.html"}) {
    EXPECT_TRUE(std::filesystem::exists(run.path(name))) << name;
  }
  EXPECT_EQ(testing::slurp(run.path("samples.txt")).size(), 24u + 5u + 1u);
  TrainSettings saved;
  update_from_json(saved, testing::slurp(run.path("config.json")));
  EXPECT_EQ(to_json(saved), to_json(run.settings));
  for (const char* part : {"recipe     none", "2 steps, seed 1234", "planned ", "results    "}) {
    EXPECT_TRUE(testing::mentions(run.output, part));
  }
}

// labels: train.Trainer T07 T17 K08
TEST(Trainer, WrongInputIsRefusedBeforeAnyWork) {
  const auto refused = [](void (*spoil)(TinyRun&)) {
    TinyRun run;
    spoil(run);
    return testing::message_of<ValueError>([&] { run.run(); });
  };
  EXPECT_TRUE(
      testing::mentions(refused([](TinyRun& r) { r.settings.data = ""; }), "--data is missing"));
  EXPECT_TRUE(testing::mentions(refused([](TinyRun& r) { r.settings.run_dir = ""; }),
                                "--run-dir is missing"));
  EXPECT_TRUE(testing::mentions(refused([](TinyRun& r) { r.settings.vocab_size = 100; }), "vocab"));
  EXPECT_TRUE(testing::mentions(refused([](TinyRun& r) { r.settings.global_batch_size = 6; }),
                                "--global-batch-size 6"));
  EXPECT_TRUE(
      testing::mentions(refused([](TinyRun& r) { r.settings.seq_length = 5000; }), "tokens"));
  EXPECT_TRUE(
      testing::mentions(refused([](TinyRun& r) { r.settings.resume = true; }), "no run to resume"));
  TinyRun run;
  EXPECT_TRUE(throws<ValueError>(
      [&] { Trainer(run.settings, reference::make_cpu_context(), TrainerOutput{}); },
      {"output.out is null"}));
  EXPECT_FALSE(std::filesystem::exists(run.settings.run_dir));
}

}  // namespace
}  // namespace kitchen::train
