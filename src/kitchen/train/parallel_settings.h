#pragma once

#include "kitchen/parallel/rank_grid.h"
#include "kitchen/train/train_settings.h"

namespace kitchen::train {

/// How the settings split the work over their ranks.
/// @throws ValueError "world size ... is not divisible by TP x PP x CP = ..."
RankGrid rank_grid(const TrainSettings& settings);

/// --vocab-size rounded up to a multiple of --make-vocab-size-divisible-by times the
/// tensor-parallel size: rows of the embedding table.
std::int64_t padded_vocab_size(const TrainSettings& settings);

/// Checks what several ranks need, before any work.
/// @throws ValueError naming flag, value and the next values that fit; NotImplementedError naming
/// what does not exist on several ranks.
void validate_parallel(const TrainSettings& settings);

}  // namespace kitchen::train
