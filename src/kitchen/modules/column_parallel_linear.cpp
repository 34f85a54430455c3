#include "kitchen/modules/column_parallel_linear.h"

#include "kitchen/base/error.h"
#include "kitchen/modules/local_linear_options.h"
#include "kitchen/modules/mappings.h"
#include "kitchen/parallel/process_group_collection.h"

namespace kitchen {

ColumnParallelLinear::ColumnParallelLinear(std::int64_t input_size, std::int64_t output_size,
                                           const Args& args)
    : allocates_weight_(!args.skip_weight_param_allocation), gathers_output_(args.gather_output) {
  const auto group = get_tensor_model_parallel_group_if_none(args.tp_group, args.is_expert);
  if (!allocates_weight_ && args.bias) {
    throw ValueError("ColumnParallelLinear: skip_weight_param_allocation with a bias is not supported");
  }
  modules::LinearOptions options = modules::local_linear_options(
      *args.config, input_size, output_size, args.init_method, args.bias, args.skip_bias_add, group);
  options.parallel_mode = "column";
  options.partition_stride = args.stride;
  options.allocate_weight = allocates_weight_;
  init(options);
}

std::pair<Tensor, std::optional<Tensor>> ColumnParallelLinear::forward(const Tensor& x) {
  if (!allocates_weight_) {
    throw RuntimeError("ColumnParallelLinear: this layer has no weight of its own; pass one to forward");
  }
  return whole(Linear::forward(x, std::nullopt));
}

std::pair<Tensor, std::optional<Tensor>> ColumnParallelLinear::forward(const Tensor& x,
                                                                       const Tensor& shared_weight) {
  return whole(Linear::forward_with(x, shared_weight, std::nullopt));
}

modules::LinearOutput ColumnParallelLinear::whole(modules::LinearOutput output) const {
  if (gathers_output_) {
    output.first = gather_from_tensor_model_parallel_region(output.first, options().tp_group);
  }
  return output;
}

ModuleInfo ColumnParallelLinear::module_info() {
  return {"ColumnParallelLinear",
          {"input_size", "output_size", "config", "init_method", "gather_output", "bias",
           "skip_bias_add", "is_expert", "skip_weight_param_allocation", "tp_comm_buffer_name",
           "layer_number", "tp_group", "stride"},
          [](const BuildArgs& args) -> std::shared_ptr<Module> {
            Args a;
            a.config = modules::config_of(args);
            args.assign("init_method", a.init_method);
            args.assign("gather_output", a.gather_output);
            args.assign("bias", a.bias);
            args.assign("skip_bias_add", a.skip_bias_add);
            args.assign("is_expert", a.is_expert);
            args.assign("skip_weight_param_allocation", a.skip_weight_param_allocation);
            args.assign("tp_group", a.tp_group);
            args.assign("stride", a.stride);
            return std::make_shared<ColumnParallelLinear>(
                args.get<std::int64_t>("input_size"), args.get<std::int64_t>("output_size"), a);
          }};
}

}  // namespace kitchen
