#pragma once

#include "kitchen/base/dtype.h"
#include "kitchen/formats/float_specs.h"
#include "kitchen/formats/scale_granularity.h"
#include "kitchen/formats/scale_rule.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kitchen {

/// What a quantized matrix holds: the format of its codes, which elements share a scale, and how
/// the scale follows from them. A scheme is a value of this type; one mechanism reads it
/// (ops/quantize.h).
struct QuantizeSpec {
  formats::FloatSpec format = formats::kE4M3;
  formats::ScaleGranularity granularity = formats::kPerTensor;
  formats::ScaleRule rule = formats::ScaleRule::float32;
  float eps = 0.0f;         ///< lower bound of the amax, read by the float32 rules
  bool stochastic = false;  ///< stochastic rounding; E2M1 only
  bool hadamard =
      false;  ///< random Hadamard transform of 16 along the columns before all else (S4)

  /// Scales are one byte (E8M0 or E4M3) instead of fp32.
  [[nodiscard]] bool has_byte_scales() const;
  /// The scale depends on the amax of the whole matrix: per-tensor scaling and nvfp4.
  [[nodiscard]] bool needs_matrix_amax() const;
  /// Rows that share a *stored* scale: granularity.rows, but 1 for nvfp4, whose 16x16 tiles repeat
  /// theirs.
  [[nodiscard]] std::int64_t stored_scale_rows() const;
};

bool operator==(const QuantizeSpec& a, const QuantizeSpec& b);
inline bool operator!=(const QuantizeSpec& a, const QuantizeSpec& b) {
  return !(a == b);
}

/// "e4m3 1x128 float32_pow2", "e2m1 1x16 nvfp4 stochastic hadamard"; a whole extent of one
/// dimension is written "all".
std::string to_string(const QuantizeSpec& spec);
std::string to_string(formats::ScaleRule rule);
/// "per_tensor", "1x128", "allx1".
std::string to_string(const formats::ScaleGranularity& granularity);

/// The spec behind a scheme name: "tensor_e4m3", "b1x128_e4m3_pow2", "mxfp8_e4m3_row",
/// "nvfp4_row_sr" ...
///
/// "mxfp8_e4m3_col" has blocks down the rows of the matrix as it is; "nvfp4_t" and "nvfp4_t_rht"
/// are meant for the transposed matrix.
/// @throws ValueError that lists the known names.
QuantizeSpec quantize_spec_from_scheme_name(std::string_view name);

/// The names that quantize_spec_from_scheme_name knows.
std::vector<std::string> quantize_scheme_names();

/// @throws ValueError if no kernel can follow the spec: stochastic rounding of another format than
/// E2M1,
///         nvfp4 with blocks that are not 16 wide, int8 with byte scales, byte scales or int8
///         without blocks, negative sizes or eps.
void validate(const QuantizeSpec& spec);

/// float8_e4m3, float8_e5m2 or float4_e2m1; uint8 for the six-bit formats and int8.
DType code_dtype(const formats::FloatSpec& format);
/// float32, float8_e8m0 or float8_e4m3.
DType scale_dtype(const QuantizeSpec& spec);

}  // namespace kitchen
