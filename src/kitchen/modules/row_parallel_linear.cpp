#include "kitchen/modules/row_parallel_linear.h"

#include "kitchen/base/error.h"
#include "kitchen/modules/local_linear_options.h"
#include "kitchen/modules/mappings.h"
#include "kitchen/parallel/process_group_collection.h"

namespace kitchen {

RowParallelLinear::RowParallelLinear(std::int64_t input_size, std::int64_t output_size,
                                     const Args& args)
    : input_is_parallel_(args.input_is_parallel) {
  const auto group = get_tensor_model_parallel_group_if_none(args.tp_group, args.is_expert);
  if (!args.input_is_parallel && args.config->sequence_parallel) {
    throw ValueError("RowParallelLinear: input_is_parallel = false together with sequence_parallel; the "
                     "input would be split along two dimensions");
  }
  modules::LinearOptions options = modules::local_linear_options(
      *args.config, input_size, output_size, args.init_method, args.bias, args.skip_bias_add, group);
  options.parallel_mode = "row";
  init(options);
  if (bias.defined()) bias.sequence_parallel = args.config->sequence_parallel;
}

std::pair<Tensor, std::optional<Tensor>> RowParallelLinear::forward(const Tensor& x) {
  if (input_is_parallel_) return Linear::forward(x, std::nullopt);
  return Linear::forward(scatter_to_tensor_model_parallel_region(x, options().tp_group), std::nullopt);
}

ModuleInfo RowParallelLinear::module_info() {
  return {"RowParallelLinear",
          {"input_size", "output_size", "config", "init_method", "bias", "input_is_parallel",
           "skip_bias_add", "is_expert", "tp_comm_buffer_name", "layer_number", "tp_group"},
          [](const BuildArgs& args) -> std::shared_ptr<Module> {
            Args a;
            a.config = modules::config_of(args);
            args.assign("init_method", a.init_method);
            args.assign("bias", a.bias);
            args.assign("input_is_parallel", a.input_is_parallel);
            args.assign("skip_bias_add", a.skip_bias_add);
            args.assign("is_expert", a.is_expert);
            args.assign("tp_group", a.tp_group);
            return std::make_shared<RowParallelLinear>(
                args.get<std::int64_t>("input_size"), args.get<std::int64_t>("output_size"), a);
          }};
}

}  // namespace kitchen
