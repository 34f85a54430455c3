#include "kitchen/train/batch_sampler.h"

#include "kitchen/base/error.h"
#include "kitchen/base/rng.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kitchen::train {

namespace {

// Stream ids that keep the two uses of a seed apart.
constexpr std::uint32_t kOffsetStream = 0x0FF5E7;
constexpr std::uint32_t kOrderStream = 0x0DE3;
// Four rounds make a strong pseudo-random permutation of large sets; small ones profit from more.
constexpr std::uint32_t kRounds = 8;

std::uint32_t mix(std::uint64_t key, std::uint32_t stream, std::int64_t epoch, std::uint32_t word) {
  const auto e = static_cast<std::uint64_t>(epoch);
  return philox4x32(Words4{{word, static_cast<std::uint32_t>(e),
                            static_cast<std::uint32_t>(e >> 32), stream}},
                    key)
      .v[0];
}

std::int64_t windows_in(const TokenSpan& tokens, std::int64_t seq_length) {
  if (seq_length < 1 || tokens.size() < seq_length + 1) {
    throw ValueError(
        fmt::format("batches: got {} tokens, wanted {} for one sequence of {} with its last label; "
                    "use a longer "
                    "text or a shorter sequence",
                    tokens.size(), seq_length + 1, seq_length));
  }
  return (tokens.size() - 1) / seq_length;
}

void check_share(std::int64_t consumed_samples, const BatchShare& share) {
  if (consumed_samples < 0 || share.micro_batch_size < 1 || share.micro_step < 0 ||
      share.dp_rank < 0 || share.dp_rank >= share.dp_size) {
    throw ValueError(fmt::format(
        "batches: consumed samples {}, micro batch {}, micro step {}, data-parallel rank {} of {}; "
        "expected counts >= 0, a micro batch >= 1 and a rank below the size",
        consumed_samples, share.micro_batch_size, share.micro_step, share.dp_rank, share.dp_size));
  }
}

/// Reads the samples of a share; `start_of(sample)` tells where each begins.
template <class StartOf>
Batch gather(const ContextPtr& context, const TokenSpan& tokens, std::int64_t seq_length,
             std::int64_t consumed_samples, const BatchShare& share, const StartOf& start_of) {
  check_share(consumed_samples, share);
  const std::int64_t first = consumed_samples + (share.micro_step * share.dp_size + share.dp_rank) *
                                                    share.micro_batch_size;
  const Shape shape{share.micro_batch_size, seq_length};
  std::vector<std::int64_t> inputs;
  std::vector<std::int64_t> labels;
  inputs.reserve(static_cast<std::size_t>(num_elements(shape)));
  labels.reserve(inputs.capacity());
  for (std::int64_t b = 0; b < share.micro_batch_size; ++b) {
    const std::int64_t start = start_of(first + b);
    for (std::int64_t s = 0; s < seq_length; ++s) {
      inputs.push_back(tokens[start + s]);
      labels.push_back(tokens[start + s + 1]);
    }
  }
  return {Tensor::from_vector(context, shape, inputs), Tensor::from_vector(context, shape, labels)};
}

}  // namespace

std::int64_t permuted_index(std::uint64_t key, std::int64_t epoch, std::int64_t index,
                            std::int64_t size) {
  std::uint32_t half_bits = 1;
  while ((std::int64_t{1} << 2 * half_bits) < size) ++half_bits;
  const std::uint64_t mask = (std::uint64_t{1} << half_bits) - 1;
  auto value = static_cast<std::uint64_t>(index);
  // The network permutes a power of four; walking on from a value outside stays a permutation
  // inside.
  do {
    std::uint64_t left = value >> half_bits;
    std::uint64_t right = value & mask;
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      const std::uint32_t word =
          mix(key, kOrderStream + (round << 16), epoch, static_cast<std::uint32_t>(right));
      left = std::exchange(right, (left ^ word) & mask);
    }
    value = left << half_bits | right;
  } while (value >= static_cast<std::uint64_t>(size));
  return static_cast<std::int64_t>(value);
}

BatchSampler::BatchSampler(TokenSpan tokens, std::int64_t seq_length, std::uint64_t seed)
    : tokens_(std::move(tokens)),
      seq_length_(seq_length),
      seed_(splitmix64(seed)),
      num_windows_(windows_in(tokens_, seq_length)) {
  // One window less leaves room for a start that moves by up to a whole window.
  if (num_windows_ > 1) --num_windows_;
  max_offset_ = std::min(seq_length - 1, tokens_.size() - 1 - num_windows_ * seq_length);
}

std::int64_t BatchSampler::start_of(std::int64_t index) const {
  const std::int64_t epoch = index / num_windows_;
  const std::int64_t window = permuted_index(seed_, epoch, index % num_windows_, num_windows_);
  const std::int64_t offset = mix(seed_, kOffsetStream, epoch, 0) % (max_offset_ + 1);
  return offset + window * seq_length_;
}

Batch BatchSampler::batch(const ContextPtr& context, std::int64_t consumed_samples,
                          const BatchShare& share) const {
  return gather(context, tokens_, seq_length_, consumed_samples, share,
                [this](std::int64_t sample) { return start_of(sample); });
}

ValidationSampler::ValidationSampler(TokenSpan tokens, std::int64_t seq_length)
    : tokens_(std::move(tokens)),
      seq_length_(seq_length),
      num_windows_(windows_in(tokens_, seq_length)) {}

Batch ValidationSampler::batch(const ContextPtr& context, std::int64_t consumed_samples,
                               const BatchShare& share) const {
  return gather(context, tokens_, seq_length_, consumed_samples, share,
                [this](std::int64_t sample) { return sample % num_windows_ * seq_length_; });
}

}  // namespace kitchen::train
