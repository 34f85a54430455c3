#include "kitchen/base/error.h"
#include "kitchen/train/checkpoint.h"
#include "kitchen/train/quantizer_states.h"
#include "kitchen/train/run_results.h"
#include "kitchen/train/trainer.h"

#include <fmt/format.h>

#include <cmath>

/// @file  trainer_checkpoint.cpp
/// @brief How a Trainer saves and how it resumes.

namespace kitchen::train {

void Trainer::require_same_run(const LoadedCheckpoint& checkpoint,
                               const TrainingState& state) const {
  std::vector<std::string> differences;
  if (checkpoint.config()) {
    TrainSettings saved;
    update_from_json(saved, *checkpoint.config());
    differences = resume_differences(saved, settings_);
  }
  const std::string recipe = recipe_text(*config_);
  if (checkpoint.recipe_or(recipe) != recipe) {
    differences.push_back("the recipe: its file says something else than when the run was started");
  }
  if (state.data_checksum != state_.data_checksum) {
    differences.push_back("--data: " + settings_.data +
                          " is not the text that this run was trained on");
  }
  if (differences.empty()) return;
  std::string text;
  for (const std::string& line : differences) text += "\n  " + line;
  throw ValueError("--resume: the run was started with other settings:" + text +
                   "\nResume with the same ones, or start a new run in another --run-dir");
}

void Trainer::resume_from_checkpoint() {
  const std::optional<LoadedCheckpoint> checkpoint =
      open_latest_checkpoint(folder_->checkpoint_path());
  if (!checkpoint) {
    throw ValueError(folder_->checkpoint_path() +
                     ": holds no checkpoint to resume from; start anew in another --run-dir");
  }
  TrainingState state = training_state_from_json(checkpoint->training_state());
  require_same_run(*checkpoint, state);
  load_with_quantizer_states(*checkpoint, {optimizer_->parameters(), optimizer_->state()}, *model_);
  optimizer_->mark_updated();
  model_->set_is_first_microbatch();
  step_ = checkpoint->step();
  saved_step_ = step_;
  state_ = std::move(state);
  state_.install_rng();
}

void Trainer::save() {
  if (saved_step_ == step_ || !is_alone()) return;
  std::vector<Tensor> weights;
  for (const NamedTensor& parameter : optimizer_->parameters()) weights.push_back(parameter.tensor);
  if (!std::isfinite(ops::sum_squares(weights).to_vector<float>().at(0))) {
    throw RuntimeError(fmt::format(
        "step {}: the weights are not finite, so no checkpoint was written; {}", step_,
        saved_step_ > 0 ? fmt::format("the last good one, of step {}, stays in {}", saved_step_,
                                      folder_->checkpoint_path())
                        : "no earlier one exists: start anew in another --run-dir with a "
                          "lower --lr"));
  }
  state_.capture_rng();
  CheckpointState state;
  state.step = step_;
  state.training_state = kitchen::train::to_json(state_);
  state.recipe = recipe_text(*config_);
  state.config = to_json(settings_);
  CheckpointTensors tensors{optimizer_->parameters(), optimizer_->state()};
  for (NamedTensor& named : quantizer_states(*model_)) tensors.model.push_back(std::move(named));
  save_checkpoint(folder_->checkpoint_path(), tensors, state,
                  static_cast<int>(settings_.keep_checkpoints));
  saved_step_ = step_;
}

}  // namespace kitchen::train
