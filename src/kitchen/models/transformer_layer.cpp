#include "kitchen/models/transformer_layer.h"

#include "kitchen/autograd/nn_functions.h"
#include "kitchen/base/error.h"
#include "kitchen/modules/norm_module.h"
#include "kitchen/parallel/rng_tracker.h"

namespace kitchen {

namespace {

Tensor apply_norm(const std::shared_ptr<Module>& module, const Tensor& x) {
  auto* norm = dynamic_cast<modules::ForwardTensor*>(module.get());
  if (norm == nullptr) {
    throw TypeError("TransformerLayer: " + module->class_name() + " is no norm");
  }
  return norm->forward(x);
}

}  // namespace

TransformerLayer::TransformerLayer(std::shared_ptr<TransformerConfig> transformer_config,
                                   const TransformerLayerSubmodules& submodules,
                                   std::int64_t number,
                                   std::shared_ptr<const ProcessGroupCollection> pg_collection,
                                   std::optional<RotaryOptions> rotary)
    : MegatronModule(std::move(transformer_config)), layer_number(number) {
  const auto build_norm = [this](const std::optional<ModuleSpec>& spec) {
    return build_module(spec.value_or(ModuleSpec(module_type<IdentityOp>())),
                        BuildArgs({}, {{"config", config},
                                       {"hidden_size", config->hidden_size},
                                       {"eps", config->layernorm_epsilon}}));
  };
  input_layernorm = build_norm(submodules.input_layernorm);
  self_attention = build_module_as<SelfAttention>(
      submodules.self_attention.value(), BuildArgs({}, {{"config", config},
                                                        {"layer_number", layer_number},
                                                        {"pg_collection", pg_collection},
                                                        {"rotary", rotary}}));
  pre_mlp_layernorm = build_norm(submodules.pre_mlp_layernorm);
  const std::shared_ptr<ProcessGroup> tp = pg_collection ? pg_collection->tp : nullptr;
  mlp = build_module_as<MLP>(submodules.mlp.value(),
                             BuildArgs({}, {{"config", config}, {"tp_group", tp}}));
  register_child("input_layernorm", input_layernorm);
  register_child("self_attention", self_attention);
  register_child("pre_mlp_layernorm", pre_mlp_layernorm);
  register_child("mlp", mlp);
}

Tensor TransformerLayer::bias_dropout_add(const std::pair<Tensor, std::optional<Tensor>>& x,
                                          const Tensor& residual) {
  const float p = training ? static_cast<float>(config->hidden_dropout) : 0.0f;
  const Rng rng = p > 0.0f ? next_rng() : Rng{};
  return autograd::bias_dropout_add(x.first, x.second.value_or(Tensor()), residual, p, rng);
}

Tensor TransformerLayer::forward(const Tensor& hidden, const std::optional<Tensor>& attention_mask) {
  const Tensor attended = bias_dropout_add(
      self_attention->forward(apply_norm(input_layernorm, hidden), attention_mask), hidden);
  return bias_dropout_add(mlp->forward(apply_norm(pre_mlp_layernorm, attended)), attended);
}

ModuleInfo TransformerLayer::module_info() {
  return {"TransformerLayer",
          {"config", "submodules", "layer_number", "pg_collection", "rotary"},
          [](const BuildArgs& args) -> std::shared_ptr<Module> {
            return std::make_shared<TransformerLayer>(
                args.get<std::shared_ptr<TransformerConfig>>("config"),
                args.get<TransformerLayerSubmodules>("submodules"),
                args.get<std::int64_t>("layer_number"),
                args.get_or<std::shared_ptr<const ProcessGroupCollection>>("pg_collection", nullptr),
                args.get_or<std::optional<RotaryOptions>>("rotary", {}));
          }};
}

}  // namespace kitchen
