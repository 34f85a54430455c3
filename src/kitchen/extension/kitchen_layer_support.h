#pragma once

#include "kitchen/base/device.h"
#include "kitchen/config/transformer_config.h"
#include "kitchen/extension/kitchen_quantization_params.h"
#include "kitchen/modules/linear.h"
#include "kitchen/parallel/process_group.h"
#include "kitchen/parallel/sharded_tensor.h"

#include <memory>
#include <optional>
#include <string>

/// @file  kitchen_layer_support.h
/// @brief What the two-phase layers share: the same question is asked and answered in one place.

namespace kitchen::extension {

/// `config` itself. @throws TypeError naming the class if it is null.
template <class Config>
std::shared_ptr<Config> require_config(const std::string& class_name, std::shared_ptr<Config> config) {
  if (config) return config;
  throw TypeError(class_name + ": keyword argument 'config' is null; pass a configuration");
}

/// What to pass to the base layer: nullopt to quantize the weight at every use, else the flag.
std::optional<bool> first_microbatch(bool is_first_microbatch, bool disable_cache);

/// Warns once a name that communication overlap through a user buffer is not supported in Kitchen.
void warn_comm_buffer_once(const std::optional<std::string>& name);

/// The linear part of `params`. @throws AssertionError naming the class, the module path and qlinear_params.
std::shared_ptr<const QLinearParams> require_qlinear_params(const std::string& class_name,
                                                            const KitchenQuantizationParams& params);

/// Parses, naming the class in the error where there is no configuration.
KitchenQuantizationParams parse_quantization(const std::string& class_name,
                                             const std::optional<QuantizationConfig>& config);

/// `config` as a TransformerConfig; a plain ModelParallelConfig is completed with defaults.
TransformerConfig as_transformer_config(const ModelParallelConfig& config);

/// init_method if the config asks for initialisation, else zeros.
InitMethod effective_init_method(const ModelParallelConfig& config, const InitMethod& init_method);

/// @throws NotImplementedError for delay_wgrad_compute.
void refuse_delayed_wgrad(const std::string& class_name, const ModelParallelConfig& config);

/// "Class(in_features=4, out_features=8, bias=True, TP=1)".
std::string linear_repr(const std::string& class_name, std::int64_t in_features,
                        std::int64_t out_features, bool bias, int tp_size);

/// Expert layers on several ranks: the token dispatcher communicates, so the sizes are divided here and the
/// layer below runs as if alone.
/// @param options of a "column" or "row" layer; others stay as they are.
/// @returns explicit_expert_comm: expert, and split over tensor- or expert-parallel ranks.
/// @throws ValueError for a row-parallel expert with a bias that several ranks would add each;
///         AssertionError if the group's size does not divide the split dimension.
bool apply_expert_rule(const std::string& class_name, bool is_expert, bool expert_parallel,
                       modules::LinearOptions& options);

/// The data-parallel group of `metadata`, else the default one.
std::shared_ptr<ProcessGroup> dp_cp_group_of(const Metadata* metadata);

}  // namespace kitchen::extension
