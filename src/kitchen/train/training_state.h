#pragma once

#include "kitchen/parallel/rng_tracker.h"

#include <cstdint>
#include <map>
#include <string>

namespace kitchen::train {

/// What a run needs besides its tensors to go on as if it had never stopped.
struct TrainingState {
  std::int64_t consumed_samples = 0;
  std::int64_t consumed_tokens = 0;
  std::int64_t nan_iterations = 0;   ///< steps skipped so far; neither Adam nor the schedule counts them
  double interval_loss = 0.0;        ///< sum of the token losses since the last log line, nats
  std::int64_t interval_tokens = 0;  ///< tokens behind interval_loss
  std::string data_checksum;
  GeneratorState default_rng;
  std::map<std::string, GeneratorState> tracker_rng;

  /// Takes the generators of the calling thread's rank.
  void capture_rng();
  /// Puts them back.
  void install_rng() const;
};

/// JSON text; every number comes back bit for bit, NaN included.
std::string to_json(const TrainingState& state);

/// @throws ValueError naming what is missing or mistyped.
TrainingState training_state_from_json(const std::string& json);

}  // namespace kitchen::train
