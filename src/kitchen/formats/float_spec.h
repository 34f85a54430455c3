#pragma once

#include "kitchen/base/host_device.h"

#include <cstdint>

namespace kitchen::formats {

/// A number format as data: everything the codec needs to know (numerics.md S1).
///
/// With m mantissa bits, stored exponent E and stored mantissa M, the value is M·2^(1-bias-m) for E
/// = 0 and (2^m + M)·2^(E-bias-m) otherwise; the sign is the top bit. A format without exponent
/// bits is a two's complement integer. A code that the format does not have is -1.
struct FloatSpec {
  const char* name = "";  ///< not read by device code
  int exponent_bits = 0;
  int mantissa_bits = 0;
  int bias = 0;
  int max_code = 0;   ///< code of the largest finite value
  int nan_code = -1;  ///< canonical NaN
  int inf_code = -1;
  int max_exponent = 0;  ///< floor(log2(largest finite value))

  [[nodiscard]] KITCHEN_HOST_DEVICE constexpr bool is_integer() const { return exponent_bits == 0; }
  [[nodiscard]] KITCHEN_HOST_DEVICE constexpr int bits() const {
    return 1 + exponent_bits + mantissa_bits;
  }
  [[nodiscard]] KITCHEN_HOST_DEVICE constexpr std::uint32_t sign_mask() const {
    return 1u << (exponent_bits + mantissa_bits);
  }
};

/// Equal numbers; the name is only a label.
KITCHEN_HOST_DEVICE constexpr bool operator==(const FloatSpec& a, const FloatSpec& b) {
  return a.exponent_bits == b.exponent_bits && a.mantissa_bits == b.mantissa_bits &&
         a.bias == b.bias && a.max_code == b.max_code && a.nan_code == b.nan_code &&
         a.inf_code == b.inf_code && a.max_exponent == b.max_exponent;
}

KITCHEN_HOST_DEVICE constexpr bool operator!=(const FloatSpec& a, const FloatSpec& b) {
  return !(a == b);
}

}  // namespace kitchen::formats
