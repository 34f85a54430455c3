#pragma once

#include "kitchen/models/gpt_model.h"

#include <cstdint>
#include <vector>

namespace kitchen::train {

struct GenerateOptions {
  std::int64_t num_tokens = 200;
  double temperature = 0.8;  ///< 0 takes the most likely token each time
  std::uint64_t seed = 1234;
  std::int64_t window = 0;  ///< tokens that the model sees at once; 0: its max_sequence_length
};

/// Continues `prompt` one token at a time and returns the new tokens. The same arguments give the
/// same tokens.
/// @throws ValueError for an empty prompt, a token outside of the vocabulary, a negative
/// temperature or a negative number of tokens; RuntimeError if the logits are not finite.
std::vector<std::int64_t> generate(GPTModel& model, const std::vector<std::int64_t>& prompt,
                                   const GenerateOptions& options);

}  // namespace kitchen::train
