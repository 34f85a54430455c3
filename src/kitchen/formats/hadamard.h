#pragma once

#include "kitchen/base/host_device.h"

#include <cstdint>

namespace kitchen::formats {

/// Bit i is set where the random sign of element i is -1 (numerics.md S4).
inline constexpr std::uint32_t kHadamardNegative = 0xD7E8u;

/// Random Hadamard transform of 16 values, in place: signs, butterflies of stride 1, 2, 4, 8, then
/// / 4. The order of the additions is part of the format.
KITCHEN_HOST_DEVICE inline void hadamard16(float* v) {
  for (int i = 0; i < 16; ++i) v[i] *= (kHadamardNegative >> i & 1u) != 0 ? -1.0f : 1.0f;
  for (int stride = 1; stride < 16; stride *= 2) {
    for (int i = 0; i < 16; ++i) {
      if ((i & stride) != 0) continue;
      const float a = v[i];
      const float b = v[i + stride];
      v[i] = a + b;
      v[i + stride] = a - b;
    }
  }
  for (int i = 0; i < 16; ++i) v[i] *= 0.25f;
}

}  // namespace kitchen::formats
