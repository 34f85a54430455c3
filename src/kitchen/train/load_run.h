#pragma once

#include "kitchen/models/gpt_model.h"

#include <memory>
#include <string>

namespace kitchen::train {

/// The model of a run folder's newest good checkpoint, on the default context, in evaluation mode.
/// Seeds this rank's generators with the run's seed.
/// @throws ValueError if the folder holds no checkpoint with a configuration, or if the recipe file
/// has changed
///         since; IOError if the recipe file is gone; as LoadedCheckpoint::load_into.
std::shared_ptr<GPTModel> load_run_model(const std::string& run_dir);

}  // namespace kitchen::train
