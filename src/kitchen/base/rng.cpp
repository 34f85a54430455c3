#include "kitchen/base/rng.h"

#include <cmath>

namespace kitchen {

double normal_at(const Rng& rng, std::uint64_t index) {
  const double u1 = (static_cast<double>(rng.word(2 * index)) + 1.0) * 0x1p-32;  // (0, 1]
  const double u2 = static_cast<double>(rng.word(2 * index + 1)) * 0x1p-32;
  constexpr double kTwoPi = 6.283185307179586476925286766559;
  return std::sqrt(-2.0 * std::log(u1)) * std::cos(kTwoPi * u2);
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
