#pragma once

#include "kitchen/extension/kitchen_column_parallel_grouped_linear.h"
#include "kitchen/extension/kitchen_column_parallel_linear.h"
#include "kitchen/extension/kitchen_layer_norm_column_parallel_linear.h"
#include "kitchen/extension/kitchen_linear.h"
#include "kitchen/extension/kitchen_row_parallel_grouped_linear.h"
#include "kitchen/extension/kitchen_row_parallel_linear.h"
#include "kitchen/modules/init_methods.h"
#include "support/layers.h"

/// @file  kitchen_layers.h
/// @brief Complete argument sets of the Kitchen linears; tests change one keyword each.

namespace kitchen::testing {

inline LinearArgs linear_args(std::shared_ptr<ModelParallelConfig> config,
                              std::optional<std::string> mode = std::string("duplicated")) {
  LinearArgs args;
  args.parallel_mode = std::move(mode);
  args.config = std::move(config);
  args.init_method = init_method_normal(0.5);
  args.bias = true;
  args.skip_bias_add = false;
  args.skip_weight_param_allocation = false;
  return args;
}

inline ColumnParallelLinearArgs column_args(std::shared_ptr<ModelParallelConfig> config) {
  ColumnParallelLinearArgs args;
  args.config = std::move(config);
  args.init_method = init_method_normal(0.5);
  args.gather_output = false;
  args.bias = true;
  args.skip_bias_add = false;
  args.is_expert = false;
  return args;
}

inline RowParallelLinearArgs row_args(std::shared_ptr<ModelParallelConfig> config) {
  RowParallelLinearArgs args;
  args.config = std::move(config);
  args.init_method = init_method_normal(0.5);
  args.bias = true;
  args.input_is_parallel = true;
  args.skip_bias_add = false;
  args.is_expert = false;
  return args;
}

inline LayerNormColumnParallelLinearArgs layer_norm_args(std::shared_ptr<TransformerConfig> config) {
  LayerNormColumnParallelLinearArgs args;
  args.config = std::move(config);
  args.init_method = init_method_normal(0.5);
  args.gather_output = false;
  args.bias = true;
  args.skip_bias_add = false;
  args.is_expert = false;
  return args;
}

/// ColumnParallelGroupedLinearArgs or RowParallelGroupedLinearArgs of experts.
template <class Args>
Args expert_args(std::shared_ptr<ModelParallelConfig> config, bool bias = true) {
  Args args;
  args.config = std::move(config);
  args.init_method = init_method_normal(0.5);
  args.bias = bias;
  args.skip_bias_add = false;
  args.is_expert = true;
  return args;
}

inline GroupedLinearArgs grouped_args(std::shared_ptr<ModelParallelConfig> config,
                                      std::optional<std::string> mode = std::string("column")) {
  auto args = expert_args<GroupedLinearArgs>(std::move(config));
  args.parallel_mode = std::move(mode);
  return args;
}

}  // namespace kitchen::testing
