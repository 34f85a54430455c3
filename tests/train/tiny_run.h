#pragma once

#include "kitchen/reference/cpu_backend.h"
#include "kitchen/train/checkpoint_folder.h"
#include "kitchen/train/trainer.h"
#include "train_io/temp_folder.h"

#include <nlohmann/json.hpp>

#include <functional>
#include <sstream>
#include <string>
#include <vector>

/// @file  tiny_run.h
/// @brief Training runs of a few milliseconds a step.

namespace kitchen::testing {

/// Words in an order that a linear congruential generator chooses: text with something to learn in
/// it.
inline std::string sample_text(std::size_t bytes) {
  static const std::vector<std::string> words{"in ",    "the ", "beginning ", "was ",
                                              "light ", "and ", "water ",     "day. ",
                                              "earth ", "of ",  "heaven ",    "night. "};
  std::string text;
  std::uint32_t state = 12345;
  while (text.size() < bytes) {
    state = state * 1664525u + 1013904223u;
    text += words[(state >> 16) % words.size()];
  }
  text.resize(bytes);
  return text;
}

/// A run folder and a text beside it.
class TinyRun {
 public:
  TinyRun() {
    spit(folder_ / "text.txt", sample_text(8000));
    settings.data = folder_ / "text.txt";
    settings.run_dir = folder_ / "run";
    settings.num_layers = 1;
    settings.hidden_size = 32;
    settings.num_attention_heads = 2;
    settings.seq_length = 16;
    settings.vocab_size = 128;
    settings.micro_batch_size = 4;
    settings.global_batch_size = 4;
    settings.train_iters = 20;
    settings.lr = 1e-2;
    settings.min_lr = 1e-3;
    settings.lr_warmup_iters = 2;
    settings.log_interval = 1;
    settings.eval_interval = 10;
    settings.eval_iters = 2;
    settings.sample_tokens = 0;
  }

  using Hook = std::function<void(train::Trainer&, std::int64_t step)>;

  /// Runs on a fresh context of `make_context`; `hook` is called after backward and before the update of each step.
  train::RunEnd run(const Hook& hook = {}) {
    std::ostringstream out;
    train::Trainer trainer(settings, make_context(), {&out, false, 80});
    if (hook) trainer.set_before_update([&](std::int64_t step) { hook(trainer, step); });
    const train::RunEnd end = trainer.run();
    planned_bytes = trainer.memory_plan().peak;
    peak_bytes = trainer.peak_bytes();
    output = out.str();
    return end;
  }

  /// Stops after `steps` steps, then resumes to the end.
  void run_in_two_parts(std::int64_t steps) {
    settings.exit_interval = steps;
    EXPECT_EQ(run(), train::RunEnd::exit_interval);
    resume();
  }

  void resume() {
    settings.exit_interval = std::nullopt;
    settings.resume = true;
    EXPECT_EQ(run(), train::RunEnd::finished);
  }

  [[nodiscard]] std::string path(const std::string& name) const {
    return settings.run_dir + "/" + name;
  }

  /// metrics.jsonl without what depends on the clock.
  [[nodiscard]] std::string metrics() const {
    std::istringstream in(slurp(path("metrics.jsonl")));
    std::string kept;
    for (std::string line; std::getline(in, line);) {
      kept += line.substr(0, line.find(",\"tokens_per_s\"")) + "\n";
    }
    return kept;
  }

  [[nodiscard]] std::vector<nlohmann::json> lines() const {
    std::istringstream in(slurp(path("metrics.jsonl")));
    std::vector<nlohmann::json> all;
    for (std::string line; std::getline(in, line);) all.push_back(nlohmann::json::parse(line));
    return all;
  }

  /// Bytes of all tensors of the checkpoint of a step.
  [[nodiscard]] std::string tensors(std::int64_t step) const {
    const std::string folder = train::checkpoint_folder(path("checkpoint"), step);
    return slurp(folder + "/model.safetensors") + slurp(folder + "/optimizer.safetensors");
  }

  [[nodiscard]] const TempFolder& folder() const { return folder_; }

  train::TrainSettings settings;
  std::function<ContextPtr()> make_context = &reference::make_cpu_context;
  std::int64_t planned_bytes = 0;
  std::int64_t peak_bytes = 0;
  std::string output;

 private:
  TempFolder folder_;
};

}  // namespace kitchen::testing
