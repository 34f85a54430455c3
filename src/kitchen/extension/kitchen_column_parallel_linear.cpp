#include "kitchen/extension/kitchen_column_parallel_linear.h"

#include "kitchen/base/error.h"
#include "kitchen/extension/kitchen_layer_support.h"
#include "kitchen/modules/local_linear_options.h"
#include "kitchen/parallel/process_group_collection.h"

namespace kitchen {

namespace {

constexpr const char* kClass = "KitchenColumnParallelLinear";

/// All keywords are read before any value is judged.
LinearArgs to_linear_args(const ColumnParallelLinearArgs& args) {
  LinearArgs base;
  base.config = args.config.get(kClass, "config");
  base.init_method = args.init_method.get(kClass, "init_method");
  const bool gather_output = args.gather_output.get(kClass, "gather_output");
  base.bias = args.bias.get(kClass, "bias");
  base.skip_bias_add = args.skip_bias_add.get(kClass, "skip_bias_add");
  base.is_expert = args.is_expert.get(kClass, "is_expert");
  if (gather_output) {
    throw ValueError(std::string(kClass) + ": gather_output = true is not supported");
  }
  base.parallel_mode = std::optional<std::string>("column");
  base.skip_weight_param_allocation = args.skip_weight_param_allocation;
  base.tp_comm_buffer_name = args.tp_comm_buffer_name;
  base.layer_number = args.layer_number;
  base.tp_group = get_tensor_model_parallel_group_if_none(args.tp_group, base.is_expert);
  return base;
}

}  // namespace

KitchenColumnParallelLinear::KitchenColumnParallelLinear(std::int64_t input_size,
                                                         std::int64_t output_size,
                                                         ColumnParallelLinearArgs args)
    : KitchenLinear(input_size, output_size, to_linear_args(args)) {
  if (config->use_cpu_initialization) {
    throw ValueError(std::string(kClass) + ": use_cpu_initialization is not supported");
  }
  partition_stride = args.stride;
}

ShardedStateDict KitchenColumnParallelLinear::sharded_state_dict(
    const std::string& prefix, const ShardedOffsets& sharded_offsets, const Metadata* metadata) {
  return sharded_by_axes({{"weight", 0}, {"bias", 0}}, prefix, sharded_offsets, metadata);
}

ModuleInfo KitchenColumnParallelLinear::module_info() {
  return {kClass,
          {"input_size", "output_size", "config", "init_method", "gather_output", "bias",
           "skip_bias_add", "is_expert", "skip_weight_param_allocation", "tp_comm_buffer_name",
           "layer_number", "tp_group", "stride"},
          [](const BuildArgs& args) -> std::shared_ptr<Module> {
            ColumnParallelLinearArgs a;
            a.config = modules::config_of(args);
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
            return std::make_shared<KitchenColumnParallelLinear>(
                args.get<std::int64_t>("input_size"), args.get<std::int64_t>("output_size"), a);
          }};
}

}  // namespace kitchen
