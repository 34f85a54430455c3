#include "kitchen/recipes/quantizer_params.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace kitchen {

namespace {

constexpr std::array<EnumName<Scaling>, 9> kScalings = {{
    {Scaling::none, "none"},
    {Scaling::tensor_current, "tensor_current"},
    {Scaling::tensor_delayed, "tensor_delayed"},
    {Scaling::row, "row"},
    {Scaling::block1x128, "block1x128"},
    {Scaling::block128x128, "block128x128"},
    {Scaling::mx32, "mx32"},
    {Scaling::nvfp4_1d, "nvfp4_1d"},
    {Scaling::nvfp4_2d, "nvfp4_2d"},
}};

constexpr std::array<EnumName<BlockConvention>, 2> kConventions = {{
    {BlockConvention::te, "te"},
    {BlockConvention::deepgemm, "deepgemm"},
}};

constexpr std::array<EnumName<MxScaleRule>, 2> kMxScaleRules = {{
    {MxScaleRule::roundup, "roundup"},
    {MxScaleRule::ocp_floor, "ocp_floor"},
}};

bool is_float_block(Scaling scaling) {
  return scaling == Scaling::block1x128 || scaling == Scaling::block128x128;
}

/// Formats that a scale of this kind is defined for (numerics.md S3).
std::vector<std::string> formats_of(Scaling scaling) {
  switch (scaling) {
    case Scaling::none:
      return {"bf16"};
    case Scaling::row:
      return {"e4m3", "e5m2", "int8"};
    case Scaling::mx32:
      return {"e4m3", "e5m2", "e2m1"};
    case Scaling::nvfp4_1d:
    case Scaling::nvfp4_2d:
      return {"e2m1"};
    default:
      return {"e4m3", "e5m2"};
  }
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void validate_delayed(const QuantizerParams& params, const std::string& subject) {
  if (params.window < 1) {
    throw ValueError(
        fmt::format("{}: window is {}, expected at least 1 step", subject, params.window));
  }
  if (params.algorithm != "max" && params.algorithm != "most_recent") {
    throw ValueError(fmt::format("{}: algorithm is \"{}\", expected one of: max, most_recent",
                                 subject, params.algorithm));
  }
}

/// Refuses what this scaling would not read, since it would silently change nothing.
void refuse_unread_settings(const QuantizerParams& params, const std::string& subject) {
  const auto require = [&](bool is_read, const std::string& setting, const char* readers) {
    if (is_read) return;
    throw ValueError(fmt::format("{}: {} does not go with scaling {}, only with {}", subject,
                                 setting, to_string(params.scaling), readers));
  };
  const QuantizerParams defaults;
  const bool is_block = is_float_block(params.scaling);
  const bool is_current =
      is_block || params.scaling == Scaling::tensor_current || params.scaling == Scaling::row;
  const bool is_delayed = params.scaling == Scaling::tensor_delayed;
  const char* const current = "tensor_current, row, block1x128 and block128x128";
  require(is_block || params.convention == defaults.convention,
          "convention " + to_string(params.convention), "block1x128 and block128x128");
  require(params.scaling == Scaling::mx32 || params.mx_scale == defaults.mx_scale,
          "mx_scale " + to_string(params.mx_scale), "mx32");
  require(is_current || params.pow2 == defaults.pow2, "pow2", current);
  require(is_current || params.eps == defaults.eps, "eps", current);
  require(is_delayed || params.window == defaults.window, "window", "tensor_delayed");
  require(is_delayed || params.margin == defaults.margin, "margin", "tensor_delayed");
  require(is_delayed || params.algorithm == defaults.algorithm, "algorithm", "tensor_delayed");
  if (params.convention == BlockConvention::deepgemm && params.eps != defaults.eps) {
    throw ValueError(subject + ": eps does not go with convention deepgemm, whose amax has a lower "
                     "bound of its own, 1e-4");
  }
}

}  // namespace

std::string to_string(Scaling scaling) {
  return enum_to_string(kScalings, scaling);
}
template <>
Scaling from_string<Scaling>(std::string_view text) {
  return enum_from_string(kScalings, "scaling", text);
}

std::string to_string(BlockConvention convention) {
  return enum_to_string(kConventions, convention);
}
template <>
BlockConvention from_string<BlockConvention>(std::string_view text) {
  return enum_from_string(kConventions, "convention", text);
}

std::string to_string(MxScaleRule rule) {
  return enum_to_string(kMxScaleRules, rule);
}
template <>
MxScaleRule from_string<MxScaleRule>(std::string_view text) {
  return enum_from_string(kMxScaleRules, "mx_scale", text);
}

const std::vector<std::string>& quantizer_formats() {
  static const std::vector<std::string> formats = {"bf16", "e4m3", "e5m2", "e2m1", "int8"};
  return formats;
}

std::string QuantizerParams::repr() const {
  std::string text = format;
  if (quantized()) text += " " + to_string(scaling);
  if (pow2) text += " pow2";
  if (eps != 0.0) text += fmt::format(" eps={}", eps);
  if (convention != BlockConvention::te) text += " convention=" + to_string(convention);
  if (mx_scale != MxScaleRule::roundup) text += " mx_scale=" + to_string(mx_scale);
  if (rht) text += " rht";
  if (stochastic) text += " stochastic";
  if (scaling == Scaling::tensor_delayed) {
    text += fmt::format(" window={} margin={} algorithm={}", window, margin, algorithm);
  }
  return text;
}

bool operator==(const QuantizerParams& a, const QuantizerParams& b) {
  const auto fields = [](const QuantizerParams& p) {
    return std::tie(p.format, p.scaling, p.pow2, p.eps, p.convention, p.mx_scale, p.rht,
                    p.stochastic, p.window, p.margin, p.algorithm);
  };
  return fields(a) == fields(b);
}

void validate_quantizer_params(const QuantizerParams& params, const std::string& subject) {
  if (!contains(quantizer_formats(), params.format)) {
    throw ValueError(fmt::format("{}: format is \"{}\", expected one of: {}. {}", subject,
                                 params.format, join_names(quantizer_formats()),
                                 did_you_mean(params.format, quantizer_formats())));
  }
  const std::vector<std::string> fitting = formats_of(params.scaling);
  if (!contains(fitting, params.format)) {
    throw ValueError(fmt::format("{}: format {} does not go with scaling {}, which takes: {}",
                                 subject, params.format, to_string(params.scaling),
                                 join_names(fitting)));
  }
  if (!(params.eps >= 0.0) || !std::isfinite(params.eps)) {
    throw ValueError(
        fmt::format("{}: eps is {}, expected a finite number of at least 0", subject, params.eps));
  }
  refuse_unread_settings(params, subject);
  if (params.stochastic && params.format != "e2m1") {
    throw ValueError(fmt::format("{}: stochastic rounding is defined for e2m1, not for {}", subject,
                                 params.format));
  }
  if (params.rht && !params.quantized()) {
    throw ValueError(subject + ": rht needs a quantized operand, but scaling is none");
  }
  if (params.scaling == Scaling::tensor_delayed) validate_delayed(params, subject);
}

}  // namespace kitchen
