#pragma once

#include "kitchen/modules/module.h"
#include "kitchen/parallel/process_group_collection.h"

namespace kitchen::train {

/// Completes the main_grad of each parameter of `model` after backward, where a rank has only a
/// part of the sum: over the tensor-parallel group for replicated parameters that saw a part of the
/// tokens or heads (Parameter::sequence_parallel), then over the data-parallel group for all, each
/// in one all-reduce in rank order. Every rank calls it. Does nothing on one rank.
void finalize_model_grads(const Module& model, const ProcessGroupCollection& groups);

}  // namespace kitchen::train
