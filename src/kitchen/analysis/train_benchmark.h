#pragma once

#include "kitchen/base/context.h"
#include "kitchen/base/op_timer.h"
#include "kitchen/train/train_settings.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kitchen::analysis {

/// What to measure and how often.
struct TrainBenchmarkOptions {
  train::TrainSettings settings;  ///< model, batch and precision
  std::int64_t warm_up_steps = 2;
  std::int64_t steps = 5;   ///< timed, a round
  std::int64_t rounds = 1;  ///< with a peer: ours and the peer take turns so often
  std::string peer;         ///< command of another program; empty: none
  std::string peer_pattern = "took ([0-9.]+) ms";
};

/// Times of optimizer steps on random tokens.
struct TrainBenchmark {
  std::int64_t tokens_per_step = 0;
  std::int64_t num_parameters = 0;
  double flops_per_step = 0.0;       ///< of the matrix products
  std::vector<double> step_seconds;  ///< all timed steps of all rounds
  std::vector<double> peer_step_seconds;
  std::map<std::string, OpTime> ops;  ///< of the timed steps
};

/// Settings of GPT-2 with 124 million parameters: batch 4, sequence 64, float32.
train::TrainSettings gpt2_124m_settings();

/// Trains on random tokens and takes the time.
/// @throws what validate and the model throw; RuntimeError if the peer fails.
TrainBenchmark benchmark_training(const TrainBenchmarkOptions& options, const ContextPtr& context);

std::string to_text(const TrainBenchmark& result);
std::string to_json(const TrainBenchmark& result);

}  // namespace kitchen::analysis
