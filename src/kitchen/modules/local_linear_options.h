#pragma once

#include "kitchen/config/transformer_config.h"
#include "kitchen/modules/build_args.h"
#include "kitchen/modules/linear.h"

namespace kitchen {

namespace modules {

/// Options that the local layers share.
LinearOptions local_linear_options(const ModelParallelConfig& config, std::int64_t input_size,
                                   std::int64_t output_size, const InitMethod& init_method, bool bias,
                                   bool skip_bias_add,
                                   const std::shared_ptr<ProcessGroup>& tp_group);

/// The config keyword, given as TransformerConfig or as ModelParallelConfig.
std::shared_ptr<ModelParallelConfig> config_of(const BuildArgs& args);

}  // namespace modules

}  // namespace kitchen
