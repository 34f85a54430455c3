#include "kitchen/extension/kitchen_linear.h"

#include "kitchen/base/error.h"
#include "kitchen/extension/kitchen_layer_support.h"
#include "kitchen/modules/expert_state.h"
#include "kitchen/modules/local_linear_options.h"
#include "kitchen/parallel/process_group_collection.h"

#include <utility>

namespace kitchen {

struct KitchenLinear::Stash {
  std::int64_t input_size;
  std::int64_t output_size;
  std::optional<std::string> parallel_mode;
  InitMethod init_method;
  bool bias;
  LinearArgs args;
};

KitchenLinear::KitchenLinear(std::int64_t input_size, std::int64_t output_size, LinearArgs args) {
  constexpr const char* kClass = "KitchenLinear";
  Stash stash{input_size, output_size, args.parallel_mode.get(kClass, "parallel_mode"), nullptr, false,
              args};
  config = extension::require_config(kClass, args.config.get(kClass, "config"));
  stash.init_method =
      extension::effective_init_method(*config, args.init_method.get(kClass, "init_method"));
  stash.bias = args.bias.get(kClass, "bias");
  const bool skip_bias_add = args.skip_bias_add.get(kClass, "skip_bias_add");
  if (args.skip_weight_param_allocation.get(kClass, "skip_weight_param_allocation")) {
    throw ValueError(std::string(kClass) + ": skip_weight_param_allocation is not supported");
  }
  const std::optional<std::string>& mode = stash.parallel_mode;
  if (mode && *mode != "column" && *mode != "row" && *mode != "duplicated") {
    throw ValueError(std::string(kClass) + ": parallel_mode is '" + *mode +
                     "', expected 'column', 'row', 'duplicated' or none");
  }
  extension::refuse_delayed_wgrad(kClass, *config);
  kitchen_return_bias = skip_bias_add && stash.bias;
  disable_parameter_transpose_cache =
      extension::as_transformer_config(*config).disable_parameter_transpose_cache;
  stash_ = std::make_shared<const Stash>(std::move(stash));
}

/// The path that names the parameters on every rank: of an expert, with its number among all experts.
std::string KitchenLinear::logical_path(const std::string& module_path) const {
  const std::optional<std::int64_t> experts =
      extension::as_transformer_config(*config).num_moe_experts;
  if (!stash_->args.is_expert || !experts) return module_path;
  const auto ep = ProcessGroupCollection::use_mpu_process_groups()->ep;
  return modules::global_expert_path(module_path, ep->rank() * (*experts / ep->size()));
}

modules::LinearOptions KitchenLinear::resolve(const KitchenQuantizationParams& quant_params,
                                              const ExtraKitchenKwargs& kwargs) const {
  const bool duplicated = stash_->parallel_mode == "duplicated";
  const std::shared_ptr<ProcessGroup>& group = stash_->args.tp_group;
  if (duplicated && group) {
    throw AssertionError(class_name() + ": duplicated linear should not have tp_group set");
  }
  if (!duplicated && !group) {
    throw AssertionError(class_name() + ": linear should always have tp_group set");
  }
  modules::LinearOptions options;
  options.in_features = stash_->input_size;
  options.out_features = stash_->output_size;
  options.sequence_parallel = config->sequence_parallel;
  options.fuse_wgrad_accumulation = config->gradient_accumulation_fusion;
  options.tp_group = group;
  options.tp_size = duplicated ? 1 : group->size();
  options.rng_tracker = &get_cuda_rng_tracker();
  options.init_method = stash_->init_method;
  options.bias = stash_->bias;
  options.return_bias = kitchen_return_bias;
  options.parallel_mode = duplicated ? std::nullopt : stash_->parallel_mode;
  options.params_dtype = kwargs.params_dtype;
  options.device = kwargs.device;
  options.qlinear_params = quant_params.qlinear_params;
  options.ub_name = stash_->args.tp_comm_buffer_name;
  options.layer_number = stash_->args.layer_number;
  options.logical_name = logical_path(quant_params.match_input.module_path);
  options.partition_stride = partition_stride;
  if (duplicated) {
    options.shard_group = get_tensor_model_parallel_group_if_none(nullptr, stash_->args.is_expert);
  }
  if (stash_->args.is_expert) {
    options.rng_tracker_name = get_expert_parallel_rng_tracker_name();
  } else if (duplicated) {
    options.rng_tracker_name = get_data_parallel_rng_tracker_name();
  }
  return options;
}

void KitchenLinear::finish_init(const std::optional<QuantizationConfig>& quantization_config) {
  if (init_finished) throw AssertionError(class_name() + ": finish_init already called");
  const ExtraKitchenKwargs kwargs =
      _get_extra_kitchen_kwargs(extension::as_transformer_config(*config));
  const KitchenQuantizationParams quant_params =
      extension::parse_quantization(class_name(), quantization_config);
  (void)extension::require_qlinear_params(class_name(), quant_params);
  extension::warn_comm_buffer_once(stash_->args.tp_comm_buffer_name);
  modules::LinearOptions options = resolve(quant_params, kwargs);
  const bool experts_are_split = config->expert_model_parallel_size > 1;
  extension::apply_expert_rule(class_name(), stash_->args.is_expert, experts_are_split, options);
  Linear::init(options);
  expert_parallel = experts_are_split;
  kitchen_quant_params = quant_params;
  set_parameter_attributes();
  stash_ = nullptr;
  init_finished = true;
}

void KitchenLinear::set_parameter_attributes() {
  const bool is_expert = stash_->args.is_expert;
  const bool duplicated = stash_->parallel_mode == "duplicated";
  const bool row = stash_->parallel_mode == "row";
  for (Parameter* parameter : {&weight, &bias}) {
    if (!parameter->defined()) continue;
    parameter->allreduce = !(is_expert && expert_parallel);
    const bool sees_own_tokens = duplicated || (row && parameter == &bias);
    parameter->sequence_parallel = !is_expert && sees_own_tokens && config->sequence_parallel;
  }
}

void KitchenLinear::require_init() const {
  if (init_finished) return;
  throw AssertionError(class_name() + ": must call finish_init first; the model's constructor does it");
}

std::pair<Tensor, std::optional<Tensor>> KitchenLinear::forward(const Tensor& x) {
  require_init();
  modules::LinearOutput result = Linear::forward(
      x, extension::first_microbatch(is_first_microbatch, disable_parameter_transpose_cache));
  is_first_microbatch = false;
  return result;
}

ShardedStateDict KitchenLinear::sharded_by_axes(const std::map<std::string, int>& tp_axis_map,
                                                const std::string& prefix,
                                                const ShardedOffsets& offsets,
                                                const Metadata* metadata) const {
  require_init();
  return make_sharded_tensors_for_checkpoint(own_state(), prefix, tp_axis_map, offsets,
                                             sharding_group(), extension::dp_cp_group_of(metadata));
}

ShardedStateDict KitchenLinear::sharded_state_dict(const std::string& prefix,
                                                   const ShardedOffsets& sharded_offsets,
                                                   const Metadata* metadata) {
  require_init();
  if (parallel_mode) {
    throw AssertionError(class_name() + ": sharded_state_dict is for the duplicated parallel mode, this "
                         "layer's is '" + *parallel_mode + "'; use the column or row class");
  }
  return sharded_by_axes({}, prefix, sharded_offsets, metadata);
}

std::string KitchenLinear::parallel_repr() const {
  if (!init_finished) return class_name() + "(uninitialized)";
  return extension::linear_repr(class_name(), in_features, out_features, use_bias, tp_size);
}

ModuleInfo KitchenLinear::module_info() {
  return {"KitchenLinear",
          {"input_size", "output_size", "parallel_mode", "config", "init_method", "bias",
           "skip_bias_add", "skip_weight_param_allocation", "tp_comm_buffer_name", "layer_number",
           "is_expert", "tp_group"},
          [](const BuildArgs& args) -> std::shared_ptr<Module> {
            LinearArgs a;
            a.parallel_mode = args.get<std::optional<std::string>>("parallel_mode");
            a.config = modules::config_of(args);
            a.init_method = args.get<InitMethod>("init_method");
            a.bias = args.get<bool>("bias");
            a.skip_bias_add = args.get<bool>("skip_bias_add");
            a.skip_weight_param_allocation = args.get<bool>("skip_weight_param_allocation");
            args.assign("tp_comm_buffer_name", a.tp_comm_buffer_name);
            args.assign("layer_number", a.layer_number);
            args.assign("is_expert", a.is_expert);
            args.assign("tp_group", a.tp_group);
            return std::make_shared<KitchenLinear>(args.get<std::int64_t>("input_size"),
                                                   args.get<std::int64_t>("output_size"), a);
          }};
}

}  // namespace kitchen
