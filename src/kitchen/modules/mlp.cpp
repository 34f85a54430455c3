#include "kitchen/modules/mlp.h"

#include "kitchen/autograd/nn_functions.h"
#include "kitchen/base/error.h"
#include "kitchen/modules/mlp_parts.h"
#include "kitchen/parallel/process_group_collection.h"

namespace kitchen {

namespace {

modules::ForwardLinear* as_linear(const std::shared_ptr<Module>& module, const char* role) {
  auto* linear = dynamic_cast<modules::ForwardLinear*>(module.get());
  if (linear == nullptr) {
    throw TypeError(std::string("MLP: ") + role + " of class " + module->class_name() +
                    " is no linear layer");
  }
  return linear;
}

}  // namespace

MLP::MLP(std::shared_ptr<TransformerConfig> transformer_config, const MLPSubmodules& submodules,
         bool is_expert, std::optional<std::int64_t> input_size,
         std::optional<std::int64_t> ffn_hidden_size, std::shared_ptr<ProcessGroup> tp_group)
    : MegatronModule(std::move(transformer_config)),
      tp_group_(get_tensor_model_parallel_group_if_none(tp_group, is_expert)) {
  if (is_expert && !ffn_hidden_size) {
    throw ValueError("MLP: an expert needs ffn_hidden_size; pass moe_ffn_hidden_size");
  }
  if (!submodules.linear_fc1 || !submodules.linear_fc2) {
    throw ValueError("MLP: submodules must name linear_fc1 and linear_fc2");
  }
  const std::int64_t in = input_size.value_or(config->hidden_size);
  const std::int64_t ffn = ffn_hidden_size.value_or(config->ffn_hidden_size.value());
  const bool gated = config->gated_linear_unit;
  activation_ = modules::activation_options("MLP", *config);

  BuildArgs fc1({in, gated ? 2 * ffn : ffn}, {{"config", config},
                                              {"init_method", modules::fc1_init(*config)},
                                              {"gather_output", false},
                                              {"bias", config->add_bias_linear},
                                              {"skip_bias_add", true},
                                              {"is_expert", is_expert},
                                              {"tp_comm_buffer_name", std::optional<std::string>("fc1")},
                                              {"tp_group", tp_group},
                                              {"stride", std::int64_t{gated ? 2 : 1}}});
  linear_fc1 = build_module(*submodules.linear_fc1, std::move(fc1));
  BuildArgs fc2({ffn, in}, {{"config", config},
                            {"init_method", modules::fc2_init(*config)},
                            {"bias", config->add_bias_linear},
                            {"input_is_parallel", true},
                            {"skip_bias_add", true},
                            {"is_expert", is_expert},
                            {"tp_comm_buffer_name", std::optional<std::string>("fc2")},
                            {"tp_group", tp_group}});
  linear_fc2 = build_module(*submodules.linear_fc2, std::move(fc2));
  fc1_ = as_linear(linear_fc1, "linear_fc1");
  fc2_ = as_linear(linear_fc2, "linear_fc2");
  register_child("linear_fc1", linear_fc1);
  register_child("linear_fc2", linear_fc2);
}

std::pair<Tensor, std::optional<Tensor>> MLP::forward(
    const Tensor& hidden, const std::optional<Tensor>& per_token_scale) {
  const auto [intermediate, fc1_bias] = fc1_->forward(hidden);
  const bool plain_gelu =
      activation_.activation == ops::Activation::gelu && !config->gated_linear_unit;
  if (config->bias_activation_fusion && plain_gelu && !fc1_bias) {
    throw AssertionError("MLP: bias_activation_fusion with a plain GELU needs a bias; set "
                         "add_bias_linear");
  }
  const Tensor activated =
      autograd::bias_activation(intermediate, fc1_bias.value_or(Tensor()), activation_);
  if (!per_token_scale) return fc2_->forward(activated);
  const auto [out, bias] = fc2_->forward(modules::scale_rows(activated, *per_token_scale));
  if (!bias) return {out, std::nullopt};
  return {modules::add_scaled_bias(out, *bias, *per_token_scale), std::nullopt};
}

ShardedStateDict MLP::sharded_state_dict(const std::string& prefix,
                                         const ShardedOffsets& sharded_offsets,
                                         const Metadata* metadata) {
  ShardedStateDict result =
      linear_fc1->sharded_state_dict(prefix + "linear_fc1.", sharded_offsets, metadata);
  if (config->gated_linear_unit) {
    for (const char* leaf : {"weight", "bias"}) {
      modules::shard_gate_and_up(result, prefix + "linear_fc1." + leaf, *tp_group_);
    }
  }
  result.update(linear_fc2->sharded_state_dict(prefix + "linear_fc2.", sharded_offsets, metadata));
  return result;
}

ModuleInfo MLP::module_info() {
  return {"MLP",
          {"config", "submodules", "is_expert", "input_size", "ffn_hidden_size", "tp_group"},
          [](const BuildArgs& args) -> std::shared_ptr<Module> {
            return std::make_shared<MLP>(
                args.get<std::shared_ptr<TransformerConfig>>("config"),
                args.get<MLPSubmodules>("submodules"), args.get_or<bool>("is_expert", false),
                args.get_or<std::optional<std::int64_t>>("input_size", {}),
                args.get_or<std::optional<std::int64_t>>("ffn_hidden_size", {}),
                args.get_or<std::shared_ptr<ProcessGroup>>("tp_group", nullptr));
          }};
}

}  // namespace kitchen
