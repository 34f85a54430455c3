#pragma once

#include "kitchen/base/enum_names.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kitchen {

/// Which elements share one scale factor, and when it is computed (numerics.md S3).
enum class Scaling {
  none,            ///< not quantized
  tensor_current,  ///< one scale a tensor, from its own amax
  tensor_delayed,  ///< one scale a tensor, from the amax history of earlier steps
  row,             ///< one scale a row of each copy
  block1x128,      ///< 128 elements along the reduction dimension
  block128x128,    ///< square blocks, the same scales in both directions
  mx32,            ///< 32 elements, scale in E8M0
  nvfp4_1d,        ///< 16 elements, scale in E4M3 and one fp32 scale a tensor
  nvfp4_2d,        ///< 16x16 elements, scales as nvfp4_1d
};
std::string to_string(Scaling scaling);
template <>
Scaling from_string<Scaling>(std::string_view text);

/// Which of two published conventions a float block scale follows (numerics.md S3.3, S3.4).
enum class BlockConvention { te, deepgemm };
std::string to_string(BlockConvention convention);
template <>
BlockConvention from_string<BlockConvention>(std::string_view text);

/// How an E8M0 scale is made of an amax (numerics.md S3.5).
enum class MxScaleRule { roundup, ocp_floor };
std::string to_string(MxScaleRule rule);
template <>
MxScaleRule from_string<MxScaleRule>(std::string_view text);

/// How one operand is quantized: data only, equality comparable. Kernels map it to what they need
/// and refuse by name what they cannot do.
struct QuantizerParams {
  std::string format = "bf16";  ///< an element of quantizer_formats(); "bf16": the compute dtype
  Scaling scaling = Scaling::none;
  bool pow2 = false;  ///< scale rounded down to a power of two
  double eps = 0.0;   ///< lower bound of amax, in units of the data
  BlockConvention convention = BlockConvention::te;
  MxScaleRule mx_scale = MxScaleRule::roundup;
  bool rht = false;            ///< random Hadamard transform of the columnwise copy
  bool stochastic = false;     ///< stochastic instead of nearest rounding
  std::int64_t window = 1024;  ///< amax history of tensor_delayed, in steps
  std::int64_t margin = 0;     ///< tensor_delayed: scale divided by 2^margin
  std::string algorithm =
      "max";  ///< tensor_delayed: "max" of the window or its "most_recent" entry

  [[nodiscard]] bool quantized() const { return scaling != Scaling::none; }
  /// "e4m3 tensor_current pow2": the format, the scaling and what differs from the defaults.
  [[nodiscard]] std::string repr() const;
};

bool operator==(const QuantizerParams& a, const QuantizerParams& b);
inline bool operator!=(const QuantizerParams& a, const QuantizerParams& b) {
  return !(a == b);
}

/// "bf16", "e4m3", "e5m2", "e2m1", "int8".
const std::vector<std::string>& quantizer_formats();

/// Checks one operand's description: known format, a scaling that fits it, non-negative eps,
/// positive window, and no setting that its scaling does not read.
/// @param subject Names the operand in the message, such as "x".
/// @throws ValueError.
void validate_quantizer_params(const QuantizerParams& params, const std::string& subject);

}  // namespace kitchen
