#pragma once

#include "kitchen/base/host_device.h"

#include <cstdint>
#include <string_view>

namespace kitchen {

/// Four 32-bit words: a counter or an output block of Philox.
struct Words4 {
  std::uint32_t v[4];
};

/// Philox4x32 with 10 rounds: a bijection of the counter under a 64-bit key.
/// @source Parallel Random Numbers: As Easy as 1, 2, 3, doi:10.1145/2063384.2063405.
KITCHEN_HOST_DEVICE inline Words4 philox4x32(Words4 counter, std::uint64_t key) {
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
  Words4 c = counter;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c.v[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c.v[2];
    c = Words4{{static_cast<std::uint32_t>(p1 >> 32) ^ c.v[1] ^ k0, static_cast<std::uint32_t>(p1),
                static_cast<std::uint32_t>(p0 >> 32) ^ c.v[3] ^ k1,
                static_cast<std::uint32_t>(p0)}};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

/// One of the independent streams of a key: the number at index i is a function of (seed,
/// stream_id, i) alone, whatever the number of threads or ranks.
struct Rng {
  std::uint64_t seed = 0;
  std::uint64_t stream_id = 0;

  /// The 32-bit word at `index`.
  [[nodiscard]] KITCHEN_HOST_DEVICE std::uint32_t word(std::uint64_t index) const {
    const std::uint64_t block = index >> 2;
    const Words4 out = philox4x32(
        Words4{{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                static_cast<std::uint32_t>(stream_id),
                static_cast<std::uint32_t>(stream_id >> 32)}},
        seed);
    return out.v[index & 3];
  }

  /// Uniform in [0, 1) with 24 bits.
  [[nodiscard]] KITCHEN_HOST_DEVICE float uniform(std::uint64_t index) const {
    return static_cast<float>(word(index) >> 8) * 0x1p-24f;
  }
};

/// out[i] = rng.word(4 · first_block + i) for i in [0, 4 · num_blocks): as many at a time as the
/// vector unit takes. Host only.
void fill_words(const Rng& rng, std::uint64_t first_block, std::int64_t num_blocks,
                std::uint32_t* out);

/// Standard normal number of two words by Box-Muller in fp64: sqrt(-2·ln(u1))·cos(2π·u2) with
/// u1 = (word1 + 1)·2^-32 and u2 = word2·2^-32.
double normal_from_words(std::uint32_t word1, std::uint32_t word2);

/// normal_from_words of the words 2 · index and 2 · index + 1 of a stream.
double normal_at(const Rng& rng, std::uint64_t index);

/// One step of splitmix64: mixes seeds.
std::uint64_t splitmix64(std::uint64_t x);

/// FNV-1a, 64 bits: turns a module path into part of a seed.
std::uint64_t fnv1a64(std::string_view text);

}  // namespace kitchen
