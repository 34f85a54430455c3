#include "kitchen/modules/local_linear_options.h"

namespace kitchen::modules {

LinearOptions local_linear_options(const ModelParallelConfig& config, std::int64_t input_size,
                                   std::int64_t output_size, const InitMethod& init_method, bool bias,
                                   bool skip_bias_add,
                                   const std::shared_ptr<ProcessGroup>& tp_group) {
  LinearOptions options;
  options.in_features = input_size;
  options.out_features = output_size;
  options.sequence_parallel = config.sequence_parallel;
  options.fuse_wgrad_accumulation = config.gradient_accumulation_fusion;
  options.tp_group = tp_group;
  options.tp_size = tp_group->size();
  options.rng_tracker = &get_cuda_rng_tracker();
  options.init_method = config.perform_initialization ? init_method : InitMethod();
  options.bias = bias;
  options.return_bias = skip_bias_add;
  options.params_dtype = config.params_dtype;
  options.device = default_context()->device();
  return options;
}

std::shared_ptr<ModelParallelConfig> config_of(const BuildArgs& args) {
  const auto entry = args.keywords().find("config");
  if (entry != args.keywords().end()) {
    const auto* full = std::any_cast<std::shared_ptr<TransformerConfig>>(&entry->second);
    if (full != nullptr) return *full;
  }
  return args.get<std::shared_ptr<ModelParallelConfig>>("config");
}

}  // namespace kitchen::modules
