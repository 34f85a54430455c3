#include "kitchen/formats/quantize_spec.h"

#include "kitchen/base/error.h"

namespace kitchen {

using formats::ScaleGranularity;
using formats::ScaleRule;

namespace {

struct SchemeRow {
  const char* name;
  QuantizeSpec spec;
};

const std::vector<SchemeRow>& schemes() {
  using namespace formats;
  constexpr ScaleRule kFp32 = ScaleRule::float32;
  constexpr ScaleRule kPow2 = ScaleRule::float32_pow2;
  constexpr ScaleRule kMx = ScaleRule::e8m0_roundup;
  constexpr ScaleRule kNv = ScaleRule::nvfp4;
  static const std::vector<SchemeRow> rows{
      {"tensor_e4m3", {kE4M3, kPerTensor, kFp32}},
      {"tensor_e4m3_pow2", {kE4M3, kPerTensor, kPow2}},
      {"tensor_e5m2", {kE5M2, kPerTensor, kFp32}},
      {"tensor_e5m2_pow2", {kE5M2, kPerTensor, kPow2}},
      {"row_e4m3", {kE4M3, kPerRow, kFp32}},
      {"row_e5m2", {kE5M2, kPerRow, kFp32}},
      {"col_e4m3", {kE4M3, kPerColumn, kFp32}},
      {"b1x128_e4m3_fp32", {kE4M3, kBlock1x128, kFp32}},
      {"b1x128_e4m3_pow2", {kE4M3, kBlock1x128, kPow2}},
      {"b1x128_e5m2_fp32", {kE5M2, kBlock1x128, kFp32}},
      {"b1x128_e5m2_pow2", {kE5M2, kBlock1x128, kPow2}},
      {"b1x128_e4m3_deepgemm", {kE4M3, kBlock1x128, ScaleRule::deepgemm}},
      {"b1x128_e4m3_deepgemm_ue8m0", {kE4M3, kBlock1x128, ScaleRule::deepgemm_ue8m0}},
      {"b128x1_e4m3_pow2", {kE4M3, kBlock128x1, kPow2}},
      {"b128x128_e4m3_fp32", {kE4M3, kBlock128x128, kFp32}},
      {"b128x128_e4m3_pow2", {kE4M3, kBlock128x128, kPow2}},
      {"b128x128_e4m3_deepgemm", {kE4M3, kBlock128x128, ScaleRule::deepgemm}},
      {"mxfp8_e4m3_row", {kE4M3, kBlock1x32, kMx}},
      {"mxfp8_e4m3_col", {kE4M3, kBlock32x1, kMx}},
      {"mxfp8_e4m3_2d", {kE4M3, kBlock32x32, kMx}},
      {"mxfp8_e4m3_row_ocp", {kE4M3, kBlock1x32, ScaleRule::e8m0_ocp_floor}},
      {"mxfp8_e5m2_row", {kE5M2, kBlock1x32, kMx}},
      {"mxfp4_row", {kE2M1, kBlock1x32, kMx}},
      {"mxfp6_e2m3_row", {kE2M3, kBlock1x32, kMx}},
      {"mxfp6_e3m2_row", {kE3M2, kBlock1x32, kMx}},
      {"nvfp4_row", {kE2M1, kBlock1x16, kNv}},
      {"nvfp4_2d", {kE2M1, kBlock16x16, kNv}},
      {"nvfp4_row_sr", {kE2M1, kBlock1x16, kNv, 0.0f, true}},
      {"nvfp4_t", {kE2M1, kBlock1x16, kNv}},
      {"nvfp4_t_sr", {kE2M1, kBlock1x16, kNv, 0.0f, true}},
      {"nvfp4_t_rht", {kE2M1, kBlock1x16, kNv, 0.0f, false, true}},
      {"nvfp4_t_rht_sr", {kE2M1, kBlock1x16, kNv, 0.0f, true, true}},
      {"int8_row", {kInt8, kPerRow, kFp32}},
  };
  return rows;
}

std::string extent(std::int64_t size) {
  return size == 0 ? "all" : std::to_string(size);
}

}  // namespace

bool QuantizeSpec::has_byte_scales() const {
  return rule == ScaleRule::e8m0_roundup || rule == ScaleRule::e8m0_ocp_floor ||
         rule == ScaleRule::nvfp4;
}

bool QuantizeSpec::needs_matrix_amax() const {
  return granularity.is_per_tensor() || rule == ScaleRule::nvfp4;
}

std::int64_t QuantizeSpec::stored_scale_rows() const {
  return rule == ScaleRule::nvfp4 ? 1 : granularity.rows;
}

bool operator==(const QuantizeSpec& a, const QuantizeSpec& b) {
  return a.format == b.format && a.granularity == b.granularity && a.rule == b.rule &&
         a.eps == b.eps && a.stochastic == b.stochastic && a.hadamard == b.hadamard;
}

std::string to_string(ScaleRule rule) {
  switch (rule) {
    case ScaleRule::float32:
      return "float32";
    case ScaleRule::float32_pow2:
      return "float32_pow2";
    case ScaleRule::deepgemm:
      return "deepgemm";
    case ScaleRule::deepgemm_ue8m0:
      return "deepgemm_ue8m0";
    case ScaleRule::e8m0_roundup:
      return "e8m0_roundup";
    case ScaleRule::e8m0_ocp_floor:
      return "e8m0_ocp_floor";
    case ScaleRule::nvfp4:
      return "nvfp4";
  }
  throw ValueError("ScaleRule: unknown enumerator " + std::to_string(static_cast<int>(rule)));
}

std::string to_string(const ScaleGranularity& granularity) {
  if (granularity.is_per_tensor()) return "per_tensor";
  return extent(granularity.rows) + "x" + extent(granularity.cols);
}

std::string to_string(const QuantizeSpec& spec) {
  std::string text = std::string(spec.format.name) + " " + to_string(spec.granularity) + " " +
                     to_string(spec.rule);
  if (spec.eps != 0.0f) text += " eps=" + std::to_string(spec.eps);
  if (spec.stochastic) text += " stochastic";
  if (spec.hadamard) text += " hadamard";
  return text;
}

QuantizeSpec quantize_spec_from_scheme_name(std::string_view name) {
  std::string known;
  for (const SchemeRow& row : schemes()) {
    if (name == row.name) return row.spec;
    known += known.empty() ? row.name : std::string(", ") + row.name;
  }
  throw ValueError("QuantizeSpec: '" + std::string(name) + "' is no scheme; known are " + known);
}

std::vector<std::string> quantize_scheme_names() {
  std::vector<std::string> names;
  for (const SchemeRow& row : schemes()) names.emplace_back(row.name);
  return names;
}

void validate(const QuantizeSpec& spec) {
  const auto refuse = [&](const std::string& why) {
    throw ValueError("QuantizeSpec '" + to_string(spec) + "': " + why);
  };
  const ScaleGranularity& block = spec.granularity;
  if (block.rows < 0 || block.cols < 0) refuse("block sizes must be 0 (whole extent) or positive");
  if (!(spec.eps >= 0.0f)) refuse("eps must be 0 or positive");
  if (spec.stochastic && spec.format != formats::kE2M1) {
    refuse("stochastic rounding exists for e2m1 only; use round to nearest");
  }
  if (spec.rule == ScaleRule::nvfp4 &&
      (spec.format != formats::kE2M1 ||
       (block != formats::kBlock1x16 && block != formats::kBlock16x16))) {
    refuse("the nvfp4 rule wants e2m1 codes in blocks of 1x16 or 16x16");
  }
  if (spec.format.is_integer() && spec.has_byte_scales()) {
    refuse("int8 wants fp32 scales; use the float32 rule");
  }
  // These put a NaN into the scale, and would lose the whole matrix for one element.
  if (block.is_per_tensor() && (spec.format.is_integer() || spec.has_byte_scales())) {
    refuse("int8 and byte scales want blocks; give a row or block granularity");
  }
}

DType code_dtype(const formats::FloatSpec& format) {
  if (format == formats::kE4M3) return DType::float8_e4m3;
  if (format == formats::kE5M2) return DType::float8_e5m2;
  if (format == formats::kE2M1) return DType::float4_e2m1;
  return DType::uint8;
}

DType scale_dtype(const QuantizeSpec& spec) {
  if (spec.rule == ScaleRule::nvfp4) return DType::float8_e4m3;
  return spec.has_byte_scales() ? DType::float8_e8m0 : DType::float32;
}

}  // namespace kitchen
