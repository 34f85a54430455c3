#pragma once

#include "kitchen/modules/module.h"
#include "kitchen/train/checkpoint.h"

#include <vector>

namespace kitchen::train {

/// What the quantizers of a model remember (Linear::get_extra_state), under the names of its
/// state_dict: copies, empty ones left out.
std::vector<NamedTensor> quantizer_states(const Module& model);

/// Loads `targets` and the quantizer states of `model` from a checkpoint.
/// @param targets parameters in `model`; the states join them.
/// @throws ValueError if the checkpoint was saved without these states; what load_into throws.
void load_with_quantizer_states(const LoadedCheckpoint& checkpoint, CheckpointTensors targets,
                                Module& model);

}  // namespace kitchen::train
