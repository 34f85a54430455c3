#include "kitchen/extension/kitchen_row_parallel_linear.h"

#include "kitchen/base/error.h"
#include "kitchen/extension/kitchen_layer_support.h"
#include "kitchen/modules/local_linear_options.h"
#include "kitchen/parallel/process_group_collection.h"

namespace kitchen {

namespace {

constexpr const char* kClass = "KitchenRowParallelLinear";

/// All keywords are read before any value is judged.
LinearArgs to_linear_args(const RowParallelLinearArgs& args) {
  LinearArgs base;
  base.config = args.config.get(kClass, "config");
  base.init_method = args.init_method.get(kClass, "init_method");
  base.bias = args.bias.get(kClass, "bias");
  const bool input_is_parallel = args.input_is_parallel.get(kClass, "input_is_parallel");
  base.skip_bias_add = args.skip_bias_add.get(kClass, "skip_bias_add");
  base.is_expert = args.is_expert.get(kClass, "is_expert");
  if (!input_is_parallel) {
    throw ValueError(std::string(kClass) + ": input_is_parallel = false is not supported");
  }
  base.parallel_mode = std::optional<std::string>("row");
  base.skip_weight_param_allocation = false;
  base.tp_comm_buffer_name = args.tp_comm_buffer_name;
  base.layer_number = args.layer_number;
  base.tp_group = get_tensor_model_parallel_group_if_none(args.tp_group, base.is_expert);
  return base;
}

}  // namespace

KitchenRowParallelLinear::KitchenRowParallelLinear(std::int64_t input_size,
                                                   std::int64_t output_size,
                                                   RowParallelLinearArgs args)
    : KitchenLinear(input_size, output_size, to_linear_args(args)) {
  if (config->use_cpu_initialization) {
    throw ValueError(std::string(kClass) + ": use_cpu_initialization is not supported");
  }
}

ShardedStateDict KitchenRowParallelLinear::sharded_state_dict(
    const std::string& prefix, const ShardedOffsets& sharded_offsets, const Metadata* metadata) {
  return sharded_by_axes({{"weight", 1}}, prefix, sharded_offsets, metadata);
}

ModuleInfo KitchenRowParallelLinear::module_info() {
  return {kClass,
          {"input_size", "output_size", "config", "init_method", "bias", "input_is_parallel",
           "skip_bias_add", "is_expert", "tp_comm_buffer_name", "layer_number", "tp_group"},
          [](const BuildArgs& args) -> std::shared_ptr<Module> {
            RowParallelLinearArgs a;
            a.config = modules::config_of(args);
            a.init_method = args.get<InitMethod>("init_method");
            a.bias = args.get<bool>("bias");
            a.input_is_parallel = args.get<bool>("input_is_parallel");
            a.skip_bias_add = args.get<bool>("skip_bias_add");
            a.is_expert = args.get<bool>("is_expert");
            args.assign("tp_comm_buffer_name", a.tp_comm_buffer_name);
            args.assign("layer_number", a.layer_number);
            args.assign("tp_group", a.tp_group);
            return std::make_shared<KitchenRowParallelLinear>(
                args.get<std::int64_t>("input_size"), args.get<std::int64_t>("output_size"), a);
          }};
}

}  // namespace kitchen
