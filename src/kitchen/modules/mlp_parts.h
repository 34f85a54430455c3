#pragma once

#include "kitchen/config/transformer_config.h"
#include "kitchen/ops/activation.h"
#include "kitchen/parallel/process_group.h"
#include "kitchen/parallel/sharded_tensor.h"

#include <string>

/// @file  mlp_parts.h
/// @brief What one MLP and the experts of a mixture, grouped or not, have in common.

namespace kitchen::modules {

/// The activation between fc1 and fc2.
/// @throws NotImplementedError naming `class_name` for activation_func_clamp_value.
ops::ActivationOptions activation_options(const std::string& class_name,
                                          const TransformerConfig& config);

/// The config's init methods, else normal ones with its standard deviations.
InitMethod fc1_init(const TransformerConfig& config);
InitMethod fc2_init(const TransformerConfig& config);

/// Row t of x [..., n] times scale [...][t], differentiable in both.
Tensor scale_rows(const Tensor& x, const Tensor& scale);

/// x [..., n] + scale [...] · bias [n], differentiable in all three.
Tensor add_scaled_bias(const Tensor& x, const Tensor& bias, const Tensor& scale);

/// Replaces the entry `name`, if there is one: a gated fc1 keeps [gate; up] in one weight or bias,
/// but saves two shards, each split over the ranks of `tp_group`.
void shard_gate_and_up(ShardedStateDict& dict, const std::string& name,
                       const ProcessGroup& tp_group);

}  // namespace kitchen::modules
