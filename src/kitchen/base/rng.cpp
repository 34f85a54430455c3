#include "kitchen/base/rng.h"

#include <cmath>

namespace kitchen {

namespace {

constexpr int kLanes = 32;  ///< blocks of one pass, spread over vector lanes

/// Philox of kLanes consecutive blocks, word by word instead of block by block.
void philox_lanes(const Rng& rng, std::uint64_t first_block, std::uint32_t out[4][kLanes]) {
  std::uint32_t c0[kLanes];
  std::uint32_t c1[kLanes];
  std::uint32_t c2[kLanes];
  std::uint32_t c3[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    const std::uint64_t block = first_block + static_cast<std::uint64_t>(lane);
    c0[lane] = static_cast<std::uint32_t>(block);
    c1[lane] = static_cast<std::uint32_t>(block >> 32);
    c2[lane] = static_cast<std::uint32_t>(rng.stream_id);
    c3[lane] = static_cast<std::uint32_t>(rng.stream_id >> 32);
  }
  auto k0 = static_cast<std::uint32_t>(rng.seed);
  auto k1 = static_cast<std::uint32_t>(rng.seed >> 32);
  for (int round = 0; round < 10; ++round) {
#pragma omp simd
    for (int lane = 0; lane < kLanes; ++lane) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0[lane];
      const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c2[lane];
      c0[lane] = static_cast<std::uint32_t>(p1 >> 32) ^ c1[lane] ^ k0;
      c1[lane] = static_cast<std::uint32_t>(p1);
      c2[lane] = static_cast<std::uint32_t>(p0 >> 32) ^ c3[lane] ^ k1;
      c3[lane] = static_cast<std::uint32_t>(p0);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    out[0][lane] = c0[lane];
    out[1][lane] = c1[lane];
    out[2][lane] = c2[lane];
    out[3][lane] = c3[lane];
  }
}

}  // namespace

void fill_words(const Rng& rng, std::uint64_t first_block, std::int64_t num_blocks,
                std::uint32_t* out) {
  std::uint32_t words[4][kLanes];
  for (std::int64_t block = 0; block < num_blocks; block += kLanes) {
    philox_lanes(rng, first_block + static_cast<std::uint64_t>(block), words);
    const std::int64_t lanes = num_blocks - block < kLanes ? num_blocks - block : kLanes;
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      for (int word = 0; word < 4; ++word) out[4 * (block + lane) + word] = words[word][lane];
    }
  }
}

double normal_from_words(std::uint32_t word1, std::uint32_t word2) {
  const double u1 = (static_cast<double>(word1) + 1.0) * 0x1p-32;  // (0, 1]
  const double u2 = static_cast<double>(word2) * 0x1p-32;
  constexpr double kTwoPi = 6.283185307179586476925286766559;
  return std::sqrt(-2.0 * std::log(u1)) * std::cos(kTwoPi * u2);
}

double normal_at(const Rng& rng, std::uint64_t index) {
  return normal_from_words(rng.word(2 * index), rng.word(2 * index + 1));
}

std::uint64_t splitmix64(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

std::uint64_t fnv1a64(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001B3u;
  }
  return hash;
}

}  // namespace kitchen
