#include "kitchen/modules/mlp.h"

#include "kitchen/autograd/math_functions.h"
#include "kitchen/autograd/nn_functions.h"
#include "kitchen/autograd/view_functions.h"
#include "kitchen/base/error.h"
#include "kitchen/modules/init_methods.h"
#include "kitchen/parallel/process_group_collection.h"

namespace kitchen {

namespace {

ops::Activation activation_of(ActivationFunc activation) {
  switch (activation) {
    case ActivationFunc::gelu: return ops::Activation::gelu;
    case ActivationFunc::gelu_tanh: return ops::Activation::gelu_tanh;
    case ActivationFunc::silu: return ops::Activation::silu;
    case ActivationFunc::relu: return ops::Activation::relu;
  }
  throw ValueError("MLP: unknown activation");
}

modules::ForwardLinear* as_linear(const std::shared_ptr<Module>& module, const char* role) {
  auto* linear = dynamic_cast<modules::ForwardLinear*>(module.get());
  if (linear == nullptr) {
    throw TypeError(std::string("MLP: ") + role + " of class " + module->class_name() +
                    " is no linear layer");
  }
  return linear;
}

InitMethod or_normal(const InitMethod& init, double std) {
  return init ? init : init_method_normal(std);
}

/// scale [...] repeated along the last dimension of `x` [..., n].
Tensor along_last(const Tensor& scale, const Tensor& x) {
  Shape column = x.shape();
  column.back() = 1;
  return autograd::repeat_interleave(autograd::reshape(scale, column), -1, x.dim(-1));
}

/// The weight of a gated fc1 as two shards: gate rows, then up rows, each split over the ranks.
ShardedTensorFactory gated_factory(const ShardedTensor& whole, std::int64_t tp_rank,
                                   std::int64_t tp_size) {
  ShardedTensorFactory factory{whole.key, whole.data, whole.replica_id, nullptr};
  factory.build = [whole, tp_rank, tp_size] {
    const std::int64_t half = whole.data.dim(0) / 2;
    std::vector<ShardedTensor> shards;
    for (std::int64_t part = 0; part < 2; ++part) {
      const int prepended = whole.prepend_axis_num;
      ShardedOffsets offsets;
      for (int axis = 0; axis < prepended; ++axis) {
        const auto i = static_cast<std::size_t>(axis);
        offsets.emplace_back(axis, whole.global_offset[i], whole.global_shape[i]);
      }
      offsets.emplace_back(prepended, tp_rank + part * tp_size, 2 * tp_size);
      shards.push_back(ShardedTensor::from_rank_offsets(
          whole.key, whole.data.detach().slice(0, part * half, half), offsets, whole.replica_id,
          prepended));
    }
    return shards;
  };
  return factory;
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
  activation_.activation = activation_of(config->activation_func);
  activation_.gated = gated;
  activation_.linear_offset = static_cast<float>(config->glu_linear_offset);
  if (config->activation_func_clamp_value) {
    throw NotImplementedError("MLP: activation_func_clamp_value is not supported");
  }

  BuildArgs fc1({in, gated ? 2 * ffn : ffn}, {{"config", config},
                                              {"init_method", or_normal(config->init_method,
                                                                        config->init_method_std)},
                                              {"gather_output", false},
                                              {"bias", config->add_bias_linear},
                                              {"skip_bias_add", true},
                                              {"is_expert", is_expert},
                                              {"tp_comm_buffer_name", std::optional<std::string>("fc1")},
                                              {"tp_group", tp_group},
                                              {"stride", std::int64_t{gated ? 2 : 1}}});
  linear_fc1 = build_module(*submodules.linear_fc1, std::move(fc1));
  BuildArgs fc2({ffn, in}, {{"config", config},
                            {"init_method", or_normal(config->output_layer_init_method,
                                                      config->output_layer_init_std())},
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
  auto [out, bias] =
      fc2_->forward(autograd::multiply(activated, along_last(*per_token_scale, activated)));
  if (!bias || out.numel() == 0) return {out, std::nullopt};
  const Tensor repeated =
      autograd::repeat_interleave(autograd::reshape(*bias, {1, -1}), 0, out.numel() / out.dim(-1));
  const Tensor scaled = autograd::multiply(autograd::reshape(repeated, out.shape()),
                                           along_last(*per_token_scale, out));
  return {autograd::add(out, scaled), std::nullopt};
}

ShardedStateDict MLP::sharded_state_dict(const std::string& prefix,
                                         const ShardedOffsets& sharded_offsets,
                                         const Metadata* metadata) {
  ShardedStateDict result =
      linear_fc1->sharded_state_dict(prefix + "linear_fc1.", sharded_offsets, metadata);
  if (config->gated_linear_unit) {
    for (auto& [name, value] : result.items()) {
      const auto* tensor = std::get_if<ShardedTensor>(&value);
      const std::string leaf = name.substr(prefix.size() + std::string("linear_fc1.").size());
      if (tensor == nullptr || (leaf != "weight" && leaf != "bias")) continue;
      value = gated_factory(*tensor, tp_group_->rank(), tp_group_->size());
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
