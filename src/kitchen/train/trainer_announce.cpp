#include "kitchen/parallel/process_group.h"
#include "kitchen/train/model_factory.h"
#include "kitchen/train/parallel_settings.h"
#include "kitchen/train/run_results.h"
#include "kitchen/train/trainer.h"

#include <fmt/format.h>

#include <ostream>

/// @file  trainer_announce.cpp
/// @brief What a Trainer prints before it starts.

namespace kitchen::train {

namespace {

/// Lines about ranks and padding; empty where there is neither.
std::string describe_ranks(const TrainSettings& s) {
  std::string text;
  if (padded_vocab_size(s) != s.vocab_size) {
    text +=
        fmt::format("vocabulary {} ids, padded to {} rows\n", s.vocab_size, padded_vocab_size(s));
  }
  if (s.ranks == 1) return text;
  text += fmt::format("ranks      {} threads: tensor parallel {}{}, data parallel {}\n", s.ranks,
                      s.tensor_model_parallel_size, s.sequence_parallel ? " with the sequence" : "",
                      rank_grid(s).data_size());
  return text + "checkpoint none, and no samples: both need a run on one rank\n";
}

}  // namespace

void Trainer::announce() const {
  std::ostream& out = *output_.out;
  out << fmt::format(
      "model      {} layers, hidden {}, {} heads, sequence {}: {} parameters{} in {}\n",
      settings_.num_layers, settings_.hidden_size, settings_.num_attention_heads,
      settings_.seq_length, optimizer_->num_parameters(), groups_->tp->size() > 1 ? " a rank" : "",
      settings_.precision);
  out << fmt::format("recipe     {}\n", recipe_label(settings_));
  out << fmt::format("data       {}\n", data_.description);
  out << fmt::format("step       {} sequences of {} tokens, {} steps, seed {}\n",
                     settings_.global_batch_size, settings_.seq_length, settings_.train_iters,
                     settings_.seed);
  out << describe_ranks(settings_);
  out << fmt::format("device     {}\n", to_string(context_->device()));
  out << fmt::format("memory     {}\n", to_string(plan_));
  if (step_ > 0) out << fmt::format("resumed    at step {}\n", step_);
  out.flush();
}

}  // namespace kitchen::train
