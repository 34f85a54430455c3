#include "kitchen/modules/layer_norm_linear.h"

#include "kitchen/autograd/nn_functions.h"
#include "kitchen/base/error.h"
#include "kitchen/modules/init_methods.h"

namespace kitchen::modules {

ops::NormKind norm_kind_from_string(const std::string& normalization) {
  if (normalization == "LayerNorm") return ops::NormKind::layer_norm;
  if (normalization == "RMSNorm") return ops::NormKind::rms_norm;
  throw ValueError("normalization is '" + normalization + "', expected 'LayerNorm' or 'RMSNorm'");
}

LayerNormLinear::LayerNormLinear() {
  register_parameter("layer_norm_weight", &layer_norm_weight);
  register_parameter("layer_norm_bias", &layer_norm_bias);
}

void LayerNormLinear::init(const LayerNormLinearOptions& options) {
  norm_.kind = norm_kind_from_string(options.normalization);
  norm_.eps = static_cast<float>(options.eps);
  norm_.zero_centered_gamma = options.zero_centered_gamma;
  Linear::init(options.linear);
}

void LayerNormLinear::allocate_parameters(const ContextPtr& context) {
  Linear::allocate_parameters(context);
  const DType dtype = options().params_dtype;
  ParameterLayout layout;
  layout.logical_name = options().logical_name + ".layer_norm_weight";
  layer_norm_weight = make_parameter(context, {in_features}, dtype, layout,
                                     init_method_constant(norm_.zero_centered_gamma ? 0.0f : 1.0f));
  layer_norm_weight.sequence_parallel = options().sequence_parallel;
  if (norm_.kind == ops::NormKind::rms_norm) return;
  layout.logical_name = options().logical_name + ".layer_norm_bias";
  layer_norm_bias = make_parameter(context, {in_features}, dtype, layout, nullptr);
  layer_norm_bias.sequence_parallel = options().sequence_parallel;
}

LinearOutput LayerNormLinear::forward(const Tensor& x, std::optional<bool> is_first_microbatch) {
  if (x.dim(-1) != in_features) {
    throw ValueError(class_name() + ": the input's last size is " + std::to_string(x.dim(-1)) +
                     ", the layer expects in_features = " + std::to_string(in_features));
  }
  return Linear::forward(autograd::norm(x, layer_norm_weight, layer_norm_bias, norm_),
                         is_first_microbatch);
}

}  // namespace kitchen::modules
