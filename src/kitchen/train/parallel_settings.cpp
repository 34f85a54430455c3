#include "kitchen/train/parallel_settings.h"

#include "kitchen/base/error.h"

#include <fmt/format.h>

namespace kitchen::train {

namespace {

constexpr std::int64_t kMostRanks = 1024;

void require_count(const char* flag, std::int64_t value) {
  if (value >= 1 && value <= kMostRanks) return;
  throw ValueError(fmt::format("--{} is {}, expected 1 to {}", flag, value, kMostRanks));
}

/// @param why ends the sentence "... is not divisible by --tensor-model-parallel-size 2".
void require_divisible(const char* flag, std::int64_t value, std::int64_t parts, const char* why) {
  if (value % parts == 0) return;
  const std::int64_t above = (value / parts + 1) * parts;
  const std::int64_t below = value / parts * parts;
  const std::string or_below = below > 0 ? fmt::format(" or {}", below) : "";
  throw ValueError(
      fmt::format("--{} {} is not divisible by --tensor-model-parallel-size {}{}; use {}{}", flag,
                  value, parts, why, above, or_below));
}

void refuse_on_several_ranks(const TrainSettings& s) {
  if (s.comm != "threads") {
    throw NotImplementedError("--comm " + s.comm +
                              ": kitchen train runs its ranks as threads; give --comm threads");
  }
  if (s.ranks == 1) return;
  const std::string subject = fmt::format("--ranks {}: ", s.ranks);
  if (s.save_interval || s.resume) {
    throw NotImplementedError(subject +
                              "checkpoints of several ranks (--save-interval, --resume) "
                              "are not supported; train on one rank to save");
  }
  if (s.backend == "cuda") {
    throw NotImplementedError(subject +
                              "collectives between GPUs (NCCL) are not supported; use "
                              "--backend cpu");
  }
}

}  // namespace

RankGrid rank_grid(const TrainSettings& settings) {
  ParallelSizes sizes;
  sizes.tensor = static_cast<int>(settings.tensor_model_parallel_size);
  return {static_cast<int>(settings.ranks), sizes};
}

std::int64_t padded_vocab_size(const TrainSettings& settings) {
  const std::int64_t multiple =
      settings.make_vocab_size_divisible_by * settings.tensor_model_parallel_size;
  return (settings.vocab_size + multiple - 1) / multiple * multiple;
}

void validate_parallel(const TrainSettings& s) {
  require_count("ranks", s.ranks);
  require_count("tensor-model-parallel-size", s.tensor_model_parallel_size);
  refuse_on_several_ranks(s);
  (void)rank_grid(s);
  const std::int64_t parts = s.tensor_model_parallel_size;
  require_divisible("num-attention-heads", s.num_attention_heads, parts, "");
  require_divisible("ffn-hidden-size", s.ffn_hidden_size.value_or(4 * s.hidden_size), parts, "");
  if (s.sequence_parallel) {
    require_divisible("seq-length", s.seq_length, parts,
                      ", which --sequence-parallel splits it over");
  }
  if (s.position_embedding_type == "learned_absolute") {
    require_divisible("max-position-embeddings", s.max_position_embeddings.value_or(s.seq_length),
                      parts, ", over which the position table is split");
  }
}

}  // namespace kitchen::train
