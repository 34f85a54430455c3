#include "kitchen/extension/kitchen_row_parallel_grouped_linear.h"

#include "kitchen/modules/local_linear_options.h"

namespace kitchen {

namespace {

constexpr const char* kClass = "KitchenRowParallelGroupedLinear";

GroupedLinearArgs to_grouped_args(const RowParallelGroupedLinearArgs& args) {
  GroupedLinearArgs base;
  base.config = args.config.get(kClass, "config");
  base.init_method = args.init_method.get(kClass, "init_method");
  base.bias = args.bias.get(kClass, "bias");
  base.skip_bias_add = args.skip_bias_add.get(kClass, "skip_bias_add");
  base.is_expert = args.is_expert.get(kClass, "is_expert");
  base.parallel_mode = std::optional<std::string>("row");
  base.tp_comm_buffer_name = args.tp_comm_buffer_name;
  base.layer_number = args.layer_number;
  base.tp_group = args.tp_group;
  base.pg_collection = args.pg_collection;
  return base;
}

}  // namespace

KitchenRowParallelGroupedLinear::KitchenRowParallelGroupedLinear(
    std::int64_t local_experts, std::int64_t input_size, std::int64_t output_size,
    const RowParallelGroupedLinearArgs& args)
    : KitchenGroupedLinear(local_experts, input_size, output_size, to_grouped_args(args)) {}

ShardedStateDict KitchenRowParallelGroupedLinear::sharded_state_dict(
    const std::string& prefix, const ShardedOffsets& sharded_offsets, const Metadata* metadata) {
  return _sharded_state_dict_grouped(axes_of_experts({{"weight", 1}}), prefix, sharded_offsets,
                                     metadata);
}

ModuleInfo KitchenRowParallelGroupedLinear::module_info() {
  return {
      kClass,
      {"num_gemms", "input_size", "output_size", "config", "init_method", "bias", "skip_bias_add",
       "is_expert", "tp_comm_buffer_name", "layer_number", "tp_group", "pg_collection"},
      [](const BuildArgs& args) -> std::shared_ptr<Module> {
        RowParallelGroupedLinearArgs a;
        a.config = modules::config_of(args);
        a.init_method = args.get<InitMethod>("init_method");
        a.bias = args.get<bool>("bias");
        a.skip_bias_add = args.get<bool>("skip_bias_add");
        a.is_expert = args.get<bool>("is_expert");
        args.assign("tp_comm_buffer_name", a.tp_comm_buffer_name);
        args.assign("layer_number", a.layer_number);
        args.assign("tp_group", a.tp_group);
        args.assign("pg_collection", a.pg_collection);
        return std::make_shared<KitchenRowParallelGroupedLinear>(
            args.get<std::int64_t>("num_gemms"), args.get<std::int64_t>("input_size"),
            args.get<std::int64_t>("output_size"), a);
      }};
}

}  // namespace kitchen
