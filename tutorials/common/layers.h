#pragma once

#include "kitchen/base/tensor.h"
#include "kitchen/config/quantization_config.h"
#include "kitchen/config/transformer_config.h"

#include <cstdint>
#include <string>

namespace kitchen::tutorials {

/// A configuration of one layer in bfloat16, without dropout.
TransformerConfig bf16_transformer(std::int64_t hidden_size, std::int64_t num_heads);

/// `{kitchen_config_type: type, key: name}`, as the recipe file of a model would hand it to a
/// layer.
QuantizationConfig configuration(const std::string& type, const std::string& key,
                                 const std::string& name);

/// What finish_init of a linear layer takes to follow the predefined recipe `name`.
QuantizationConfig linear_recipe(const std::string& name);

/// Bytes that the tape behind `root` keeps for its backward; a tensor counts once.
std::int64_t saved_bytes(const Tensor& root);

}  // namespace kitchen::tutorials
