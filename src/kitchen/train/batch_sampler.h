#pragma once

#include "kitchen/base/tensor.h"
#include "kitchen/train/token_source.h"

#include <cstdint>
#include <vector>

namespace kitchen::train {

/// Sequences for one forward pass. labels[b, s] is the token after inputs[b, s].
struct Batch {
  Tensor inputs;  ///< [batch, seq_length], int64
  Tensor labels;  ///< [batch, seq_length], int64
};

/// Which part of the global batch a data-parallel rank reads in one micro step.
struct BatchShare {
  std::int64_t micro_batch_size = 1;  ///< sequences a rank and micro step
  std::int64_t micro_step = 0;
  std::int64_t dp_rank = 0;
  std::int64_t dp_size = 1;
};

/// Position `index` of a pseudo-random permutation of [0, size).
///
/// A Feistel network over Philox with cycle walking: a function of (key, epoch, index) alone, so
/// that no list of the epoch has to be kept or saved.
/// @source Luby and Rackoff, How to Construct Pseudorandom Permutations, doi:10.1137/0217022.
std::int64_t permuted_index(std::uint64_t key, std::int64_t epoch, std::int64_t index,
                            std::int64_t size);

/// Shuffled training sequences whose whole state is the number of samples consumed so far.
///
/// An epoch cuts the text into windows of seq_length inputs, from a start that each epoch draws
/// anew, and reads them in a random order. A window reads one token more than its length, as the
/// last label. Sample i is a function of (tokens, seq_length, seed, i), so a resumed run reads what
/// the straight run would have read, and the global batch is the same for every data-parallel size.
class BatchSampler {
 public:
  /// @throws ValueError if `tokens` holds less than one window of seq_length + 1.
  BatchSampler(TokenSpan tokens, std::int64_t seq_length, std::uint64_t seed);

  [[nodiscard]] std::int64_t samples_per_epoch() const { return num_windows_; }
  /// Place of the first token of sample `index`, counted from the start of the tokens.
  [[nodiscard]] std::int64_t start_of(std::int64_t index) const;

  /// The share of one rank in the micro step that begins after `consumed_samples` samples of the
  /// global batch: samples consumed + (micro_step · dp_size + dp_rank) · micro_batch_size and
  /// following.
  [[nodiscard]] Batch batch(const ContextPtr& context, std::int64_t consumed_samples,
                            const BatchShare& share) const;

 private:
  TokenSpan tokens_;
  std::int64_t seq_length_;
  std::uint64_t seed_;
  std::int64_t num_windows_;
  std::int64_t max_offset_;  ///< an epoch begins at a token from 0 to here
};

/// Validation sequences: windows in the order of the text, the same in every evaluation.
class ValidationSampler {
 public:
  /// @throws ValueError if `tokens` holds less than one window of seq_length + 1.
  ValidationSampler(TokenSpan tokens, std::int64_t seq_length);

  [[nodiscard]] std::int64_t num_samples() const { return num_windows_; }
  /// As BatchSampler::batch; after the last window comes the first again.
  [[nodiscard]] Batch batch(const ContextPtr& context, std::int64_t consumed_samples,
                            const BatchShare& share) const;

 private:
  TokenSpan tokens_;
  std::int64_t seq_length_;
  std::int64_t num_windows_;
};

}  // namespace kitchen::train
