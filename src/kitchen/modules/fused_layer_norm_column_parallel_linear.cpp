#include "kitchen/modules/fused_layer_norm_column_parallel_linear.h"

#include "kitchen/config/transformer_config.h"
#include "kitchen/modules/local_linear_options.h"
#include "kitchen/parallel/process_group_collection.h"

namespace kitchen {

ModuleInfo FusedLayerNormColumnParallelLinear::module_info() {
  return {"FusedLayerNormColumnParallelLinear",
          {"input_size", "output_size", "config", "init_method", "gather_output", "bias",
           "skip_bias_add", "is_expert", "skip_weight_param_allocation", "layer_number",
           "tp_comm_buffer_name", "tp_group", "stride"},
          [](const BuildArgs& args) -> std::shared_ptr<Module> {
            const auto config = args.get<std::shared_ptr<TransformerConfig>>("config");
            const auto group = get_tensor_model_parallel_group_if_none(
                args.get_or<std::shared_ptr<ProcessGroup>>("tp_group", nullptr), false);
            modules::LayerNormLinearOptions options;
            options.linear = modules::local_linear_options(
                *config, args.get<std::int64_t>("input_size"), args.get<std::int64_t>("output_size"),
                args.get<InitMethod>("init_method"), args.get<bool>("bias"),
                args.get<bool>("skip_bias_add"), group);
            options.linear.parallel_mode = "column";
            options.linear.partition_stride = args.get_or<std::int64_t>("stride", 1);
            options.normalization = config->normalization;
            options.eps = config->layernorm_epsilon;
            options.zero_centered_gamma = config->layernorm_zero_centered_gamma;
            return std::make_shared<FusedLayerNormColumnParallelLinear>(options);
          }};
}

}  // namespace kitchen
