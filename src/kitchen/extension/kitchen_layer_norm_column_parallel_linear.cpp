#include "kitchen/extension/kitchen_layer_norm_column_parallel_linear.h"

#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/extension/get_extra_kitchen_kwargs.h"
#include "kitchen/extension/kitchen_layer_support.h"
#include "kitchen/parallel/process_group_collection.h"

namespace kitchen {

namespace {

constexpr const char* kClass = "KitchenLayerNormColumnParallelLinear";

void refuse(bool found, const std::string& what) {
  if (found) throw ValueError(std::string(kClass) + ": " + what + " is not supported");
}

}  // namespace

KitchenLayerNormColumnParallelLinear::KitchenLayerNormColumnParallelLinear(
    std::int64_t input_size, std::int64_t output_size, LayerNormColumnParallelLinearArgs args)
    : config(extension::require_config(kClass, args.config.get(kClass, "config"))) {
  const InitMethod init_method = args.init_method.get(kClass, "init_method");
  const bool gather_output = args.gather_output.get(kClass, "gather_output");
  const bool has_bias = args.bias.get(kClass, "bias");
  const bool skip_bias_add = args.skip_bias_add.get(kClass, "skip_bias_add");
  const bool is_expert = args.is_expert.get(kClass, "is_expert");
  refuse(gather_output, "gather_output = true");
  refuse(is_expert, "is_expert = true (MoE)");
  refuse(args.skip_weight_param_allocation, "skip_weight_param_allocation");
  refuse(config->tp_comm_overlap, "config.tp_comm_overlap");
  refuse(config->symmetric_ar_type.has_value(), "config.symmetric_ar_type");
  refuse(config->use_cpu_initialization, "config.use_cpu_initialization");
  extension::refuse_delayed_wgrad(kClass, *config);
  (void)modules::norm_kind_from_string(config->normalization);
  const auto group = get_tensor_model_parallel_group_if_none(args.tp_group, false);
  tp_size = group->size();
  tp_rank = group->rank();
  if (tp_size != config->tensor_model_parallel_size) {
    logger().warning(std::string(kClass) + ": the group has " + std::to_string(tp_size) +
                     " ranks, config.tensor_model_parallel_size is " +
                     std::to_string(config->tensor_model_parallel_size) + "; the group counts");
  }
  kitchen_return_bias = skip_bias_add && has_bias;
  disable_parameter_transpose_cache = config->disable_parameter_transpose_cache;
  modules::LinearOptions& linear = stash_.linear;
  linear.in_features = input_size;
  linear.out_features = output_size;
  linear.sequence_parallel = config->sequence_parallel;
  linear.fuse_wgrad_accumulation = config->gradient_accumulation_fusion;
  linear.tp_group = group;
  linear.tp_size = tp_size;
  linear.init_method = extension::effective_init_method(*config, init_method);
  linear.bias = has_bias;
  linear.return_bias = kitchen_return_bias;
  linear.parallel_mode = "column";
  linear.ub_name = args.tp_comm_buffer_name;
  linear.layer_number = args.layer_number;
  linear.partition_stride = args.stride;
  stash_.normalization = config->normalization;
  stash_.eps = config->layernorm_epsilon;
  stash_.zero_centered_gamma = config->layernorm_zero_centered_gamma;
}

void KitchenLayerNormColumnParallelLinear::finish_init(
    const std::optional<QuantizationConfig>& quantization_config) {
  if (init_finished) throw AssertionError(class_name() + ": finish_init already called");
  const ExtraKitchenKwargs kwargs = _get_extra_kitchen_kwargs(*config);
  const KitchenQuantizationParams quant_params =
      extension::parse_quantization(class_name(), quantization_config);
  modules::LayerNormLinearOptions options = stash_;
  options.linear.qlinear_params = extension::require_qlinear_params(class_name(), quant_params);
  options.linear.params_dtype = kwargs.params_dtype;
  options.linear.device = kwargs.device;
  options.linear.rng_tracker = &get_cuda_rng_tracker();
  options.linear.logical_name = quant_params.match_input.module_path;
  LayerNormLinear::init(options);
  kitchen_quant_params = quant_params;
  stash_ = {};
  init_finished = true;
}

void KitchenLayerNormColumnParallelLinear::require_init() const {
  if (init_finished) return;
  throw AssertionError(class_name() + ": must call finish_init first; the model's constructor does it");
}

std::pair<Tensor, std::optional<Tensor>> KitchenLayerNormColumnParallelLinear::forward(
    const Tensor& x) {
  require_init();
  modules::LinearOutput result = LayerNormLinear::forward(
      x, extension::first_microbatch(is_first_microbatch, disable_parameter_transpose_cache));
  is_first_microbatch = false;
  return result;
}

ShardedStateDict KitchenLayerNormColumnParallelLinear::sharded_state_dict(
    const std::string& prefix, const ShardedOffsets& sharded_offsets, const Metadata* metadata) {
  require_init();
  return make_sharded_tensors_for_checkpoint(own_state(), prefix, {{"weight", 0}, {"bias", 0}},
                                             sharded_offsets, sharding_group(),
                                             extension::dp_cp_group_of(metadata));
}

std::string KitchenLayerNormColumnParallelLinear::repr() const {
  if (!init_finished) return class_name() + "(uninitialized)";
  return extension::linear_repr(class_name(), in_features, out_features, use_bias, tp_size);
}

ModuleInfo KitchenLayerNormColumnParallelLinear::module_info() {
  return {kClass,
          {"input_size", "output_size", "config", "init_method", "gather_output", "bias",
           "skip_bias_add", "is_expert", "skip_weight_param_allocation", "layer_number",
           "tp_comm_buffer_name", "tp_group", "stride"},
          [](const BuildArgs& args) -> std::shared_ptr<Module> {
            LayerNormColumnParallelLinearArgs a;
            a.config = args.get<std::shared_ptr<TransformerConfig>>("config");
            a.init_method = args.get<InitMethod>("init_method");
            a.gather_output = args.get<bool>("gather_output");
            a.bias = args.get<bool>("bias");
            a.skip_bias_add = args.get<bool>("skip_bias_add");
            a.is_expert = args.get<bool>("is_expert");
            args.assign("skip_weight_param_allocation", a.skip_weight_param_allocation);
            args.assign("tp_comm_buffer_name", a.tp_comm_buffer_name);
            args.assign("layer_number", a.layer_number);
            args.assign("tp_group", a.tp_group);
            args.assign("stride", a.stride);
            return std::make_shared<KitchenLayerNormColumnParallelLinear>(
                args.get<std::int64_t>("input_size"), args.get<std::int64_t>("output_size"), a);
          }};
}

}  // namespace kitchen
