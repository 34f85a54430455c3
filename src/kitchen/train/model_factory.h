#pragma once

#include "kitchen/config/transformer_config.h"
#include "kitchen/models/gpt_model.h"
#include "kitchen/train/train_settings.h"

#include <memory>

namespace kitchen::train {

/// The transformer configuration that the settings describe, recipe loaded and validated.
/// @throws what validate_recipe, apply_kitchen_flags and TransformerConfig::validate throw.
std::shared_ptr<TransformerConfig> make_transformer_config(const TrainSettings& settings);

/// The model on the default context of this rank: Kitchen's layers if there is a recipe, else unquantized ones
/// of the same topology.
std::shared_ptr<GPTModel> make_model(const TrainSettings& settings,
                                     const std::shared_ptr<TransformerConfig>& config);

}  // namespace kitchen::train
