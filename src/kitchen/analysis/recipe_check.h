#pragma once

#include "kitchen/base/context.h"
#include "kitchen/train/train_settings.h"

#include <string>
#include <vector>

namespace kitchen::analysis {

/// What a recipe does to one model.
struct RecipeCheck {
  std::vector<std::string> warnings;  ///< rules that never match, configurations that nothing uses
  std::string text;                   ///< layer -> rule -> configuration, then the configurations
};

/// Validates the recipe of `settings` (its kitchen_config_file) and builds the model on the meta
/// device, so that every layer has taken its configuration, at no cost in memory.
///
/// @param device_context a context of the device that would train.
/// @throws what loading, validate_recipe and the model's layers throw, with file and line or module
/// path.
RecipeCheck check_recipe(const train::TrainSettings& settings, const ContextPtr& device_context);

}  // namespace kitchen::analysis
