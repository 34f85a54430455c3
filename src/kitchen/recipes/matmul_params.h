#pragma once

#include "kitchen/base/enum_names.h"

#include <string>
#include <string_view>

namespace kitchen {

/// How partial products are summed (numerics.md S5.2).
enum class Accumulate {
  fast,      ///< in the tensor core's own accumulator
  promoted,  ///< moved to fp32 registers every 128 elements of the reduction
  fp32,      ///< plain fp32
};
std::string to_string(Accumulate accumulate);
template <>
Accumulate from_string<Accumulate>(std::string_view text);

/// Who does a quantized matrix product.
enum class MatmulBackend {
  automatic,  ///< "auto": native where the device has it, else emulation
  native,     ///< the device's instructions on the quantized codes
  emulation,  ///< dequantize, then a high-precision product
  reference,  ///< the slow exact sibling
};
std::string to_string(MatmulBackend backend);
template <>
MatmulBackend from_string<MatmulBackend>(std::string_view text);

/// One of the three products of a linear layer.
struct MatmulParams {
  bool quantized =
      false;  ///< false: the operands are used unquantized, whatever their quantizers say
  Accumulate accumulate = Accumulate::fp32;
  MatmulBackend backend = MatmulBackend::automatic;

  /// "quantized promoted auto" or "unquantized".
  [[nodiscard]] std::string repr() const;
};

inline bool operator==(const MatmulParams& a, const MatmulParams& b) {
  return a.quantized == b.quantized && a.accumulate == b.accumulate && a.backend == b.backend;
}
inline bool operator!=(const MatmulParams& a, const MatmulParams& b) {
  return !(a == b);
}

}  // namespace kitchen
