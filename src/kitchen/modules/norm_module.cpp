#include "kitchen/modules/norm_module.h"

#include "kitchen/autograd/nn_functions.h"
#include "kitchen/base/context.h"
#include "kitchen/base/rank_state.h"
#include "kitchen/modules/init_methods.h"

namespace kitchen {

namespace {

template <class T>
ModuleInfo norm_info(const char* name) {
  return {name,
          {"config", "hidden_size", "eps"},
          [](const BuildArgs& args) -> std::shared_ptr<Module> {
            return std::make_shared<T>(*args.get<std::shared_ptr<TransformerConfig>>("config"),
                                       args.get<std::int64_t>("hidden_size"),
                                       args.get_or<double>("eps", 1e-5));
          }};
}

}  // namespace

NormModule::NormModule(const TransformerConfig& config, std::int64_t hidden_size, double eps,
                       ops::NormKind kind) {
  options_ = {kind, static_cast<float>(eps), config.layernorm_zero_centered_gamma};
  register_parameter("weight", &weight);
  register_parameter("bias", &bias);
  const ContextPtr context = default_context();
  const std::string name = "norm" + std::to_string(current_rank_state().next_creation_index());
  ParameterLayout layout;
  layout.logical_name = name + ".weight";
  weight = make_parameter(context, {hidden_size}, config.params_dtype, layout,
                          init_method_constant(options_.zero_centered_gamma ? 0.0f : 1.0f));
  weight.sequence_parallel = config.sequence_parallel;
  if (kind == ops::NormKind::rms_norm) return;
  layout.logical_name = name + ".bias";
  bias = make_parameter(context, {hidden_size}, config.params_dtype, layout, nullptr);
  bias.sequence_parallel = config.sequence_parallel;
}

Tensor NormModule::forward(const Tensor& x) { return autograd::norm(x, weight, bias, options_); }

ModuleInfo LayerNormImpl::module_info() { return norm_info<LayerNormImpl>("LayerNormImpl"); }

ModuleInfo RMSNormImpl::module_info() { return norm_info<RMSNormImpl>("RMSNormImpl"); }

ModuleInfo IdentityOp::module_info() {
  return {"IdentityOp",
          {"config", "hidden_size", "eps"},
          [](const BuildArgs&) -> std::shared_ptr<Module> { return std::make_shared<IdentityOp>(); }};
}

}  // namespace kitchen
