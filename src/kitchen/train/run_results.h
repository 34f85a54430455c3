#pragma once

#include "kitchen/base/op_timer.h"
#include "kitchen/models/gpt_model.h"
#include "kitchen/train/quantization_monitor.h"
#include "kitchen/train/run_folder.h"
#include "kitchen/train/token_source.h"
#include "kitchen/train/train_settings.h"

#include <string>

namespace kitchen::train {

/// Writes quantization.json and op_times.json of a run folder.
void write_run_results(const RunFolder& folder, const QuantizationMonitor& monitor,
                       const OpTimer& op_timer);

/// Writes text that the model makes after the first tokens of the validation part.
void write_samples(GPTModel& model, const TokenSpan& validation, const TrainSettings& settings,
                   const std::string& path);

/// Writes report.html of a run folder from the other files in it.
void write_run_report(const RunFolder& folder);

/// What the settings say of the recipe, for people: the file, "recipe number 2", or "none".
std::string recipe_label(const TrainSettings& settings);

/// The recipe that the configuration holds, as text that is equal for equal recipes; "none" without one.
std::string recipe_text(const TransformerConfig& config);

}  // namespace kitchen::train
