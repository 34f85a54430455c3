#include "kitchen/recipes/quantize_spec_of.h"

#include "kitchen/base/error.h"

namespace kitchen {

namespace {

using formats::ScaleRule;

formats::FloatSpec format_of(const std::string& name) {
  for (const formats::FloatSpec& spec : formats::all_formats()) {
    if (name == spec.name) return spec;
  }
  throw ValueError("quantize_spec_of: '" + name + "' is no format that codes can have");
}

ScaleRule float_rule(const QuantizerParams& params) {
  if (params.convention == BlockConvention::deepgemm) {
    return params.pow2 ? ScaleRule::deepgemm_ue8m0 : ScaleRule::deepgemm;
  }
  return params.pow2 ? ScaleRule::float32_pow2 : ScaleRule::float32;
}

}  // namespace

QuantizeSpec quantize_spec_of(const QuantizerParams& params, bool columnwise) {
  QuantizeSpec spec;
  spec.format = format_of(params.format);
  spec.eps = static_cast<float>(params.eps);
  spec.stochastic = params.stochastic;
  spec.hadamard = params.rht && columnwise;
  spec.rule = float_rule(params);
  switch (params.scaling) {
    case Scaling::tensor_current:
    case Scaling::tensor_delayed: spec.granularity = formats::kPerTensor; return spec;
    case Scaling::row: spec.granularity = formats::kPerRow; return spec;
    case Scaling::block1x128: spec.granularity = formats::kBlock1x128; return spec;
    case Scaling::block128x128: spec.granularity = formats::kBlock128x128; return spec;
    case Scaling::mx32:
      spec.granularity = formats::kBlock1x32;
      spec.rule = params.mx_scale == MxScaleRule::roundup ? ScaleRule::e8m0_roundup
                                                          : ScaleRule::e8m0_ocp_floor;
      return spec;
    case Scaling::nvfp4_1d:
      spec.granularity = formats::kBlock1x16;
      spec.rule = ScaleRule::nvfp4;
      return spec;
    case Scaling::nvfp4_2d:
      spec.granularity = formats::kBlock16x16;
      spec.rule = ScaleRule::nvfp4;
      return spec;
    case Scaling::none: break;
  }
  throw ValueError("quantize_spec_of: an operand with scaling 'none' has no codes");
}

}  // namespace kitchen
