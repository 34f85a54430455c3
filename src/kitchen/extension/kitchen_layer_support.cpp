#include "kitchen/extension/kitchen_layer_support.h"

#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/base/rank_state.h"
#include "kitchen/parallel/process_group_collection.h"

#include <set>
#include <utility>

namespace kitchen::extension {

namespace {

struct WarnedBuffers {
  std::set<std::string> names;
};

}  // namespace

std::optional<bool> first_microbatch(bool is_first_microbatch, bool disable_cache) {
  if (disable_cache) return std::nullopt;
  return is_first_microbatch;
}

void warn_comm_buffer_once(const std::optional<std::string>& name) {
  if (!name || name->empty()) return;
  if (!current_rank_state().slot<WarnedBuffers>().names.insert(*name).second) return;
  logger().warning("communication overlap through the user buffer '" + *name +
                   "' is not supported in Kitchen; the layer runs without it");
}

std::shared_ptr<const QLinearParams> require_qlinear_params(
    const std::string& class_name, const KitchenQuantizationParams& params) {
  if (params.qlinear_params) return params.qlinear_params;
  throw AssertionError(class_name + " at '" + params.match_input.module_path +
                       "': the configuration '" + params.params_config_key +
                       "' holds no qlinear_params; give the layer a QLinearParams configuration, or a "
                       "CompoundParams with one");
}

KitchenQuantizationParams parse_quantization(const std::string& class_name,
                                             const std::optional<QuantizationConfig>& config) {
  if (!config) {
    throw AssertionError(class_name +
                         ": Kitchen extension expects a quantization config for each of its layers, "
                         "and no rule of the recipe matches this one; add a catch-all rule with "
                         "pattern \"*\"");
  }
  return KitchenQuantizationParams::parse_from_config(config);
}

TransformerConfig as_transformer_config(const ModelParallelConfig& config) {
  if (const auto* full = dynamic_cast<const TransformerConfig*>(&config)) return *full;
  TransformerConfig completed;
  static_cast<ModelParallelConfig&>(completed) = config;
  return completed;
}

InitMethod effective_init_method(const ModelParallelConfig& config, const InitMethod& init_method) {
  return config.perform_initialization ? init_method : InitMethod();
}

void refuse_delayed_wgrad(const std::string& class_name, const ModelParallelConfig& config) {
  if (!config.delay_wgrad_compute) return;
  throw NotImplementedError(class_name + ": delay_wgrad_compute is not supported; set it to false");
}

std::string linear_repr(const std::string& class_name, std::int64_t in_features,
                        std::int64_t out_features, bool bias, int tp_size) {
  return class_name + "(in_features=" + std::to_string(in_features) +
         ", out_features=" + std::to_string(out_features) + ", bias=" + (bias ? "True" : "False") +
         ", TP=" + std::to_string(tp_size) + ")";
}

bool apply_expert_rule(const std::string& class_name, bool is_expert, bool expert_parallel,
                       modules::LinearOptions& options) {
  if (!is_expert || (options.tp_size == 1 && !expert_parallel)) return false;
  if (!options.parallel_mode) return true;
  if (options.parallel_mode == "row" && options.bias && options.tp_size > 1) {
    throw ValueError(class_name +
                     ": a row-parallel expert with a bias on several ranks would add it on each; "
                     "use bias=false or expert_tensor_parallel_size = 1");
  }
  std::int64_t& split = options.parallel_mode == "column" ? options.out_features : options.in_features;
  split = divide(split, options.tp_size);
  options.shard_mode = std::exchange(options.parallel_mode, std::nullopt);
  options.shard_group = std::exchange(options.tp_group, nullptr);
  options.tp_size = 1;
  return true;
}

std::shared_ptr<ProcessGroup> dp_cp_group_of(const Metadata* metadata) {
  if (metadata != nullptr && metadata->dp_cp_group) return metadata->dp_cp_group;
  return ProcessGroupCollection::use_mpu_process_groups()->dp_cp;
}

}  // namespace kitchen::extension
