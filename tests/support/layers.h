#pragma once

#include "kitchen/config/quantization_config.h"
#include "kitchen/config/transformer_config.h"
#include "kitchen/parallel/process_group.h"

#include <memory>
#include <string>

/// @file  layers.h
/// @brief Configurations, quantization configs and fake groups that layer tests build from.

namespace kitchen::testing {

/// A small transformer without dropout; float32 unless changed.
inline TransformerConfig small_transformer() {
  TransformerConfig config;
  config.num_layers = 2;
  config.hidden_size = 12;
  config.num_attention_heads = 4;
  config.hidden_dropout = 0.0;
  config.attention_dropout = 0.0;
  return config;
}

inline TransformerConfig bf16_transformer() {
  TransformerConfig config = small_transformer();
  config.bf16 = true;
  config.params_dtype = DType::bfloat16;
  return config;
}

/// `{kitchen_config_type: type, key: value}` as a recipe would hand it to the layer at `path`.
inline QuantizationConfig quantization(const char* type, const char* key, const ConfigValue& value,
                                       const std::string& path = "layer") {
  return QuantizationConfig(ConfigDict{{"kitchen_config_type", type}, {key, value}},
                            MatchContext{path, std::nullopt}, "test_config");
}
inline QuantizationConfig linear_recipe(std::int64_t index, const std::string& path = "layer") {
  return quantization("QLinearParams", "recipe_idx", index, path);
}
inline QuantizationConfig named_linear_recipe(const std::string& name,
                                              const std::string& path = "layer") {
  return quantization("QLinearRecipe", "recipe", name, path);
}
inline QuantizationConfig attention_recipe(std::int64_t index, const std::string& path = "core") {
  return quantization("QAttentionParams", "recipe_idx", index, path);
}
inline QuantizationConfig flash_recipe(const std::string& name, const std::string& path = "core") {
  return quantization("QFlashAttentionParams", "recipe_name", name, path);
}

/// Rank `rank` of a group of `size`: enough to build a layer, not to run it.
inline std::shared_ptr<ProcessGroup> fake_group(int size, int rank) {
  std::vector<int> ranks;
  for (int i = 0; i < size; ++i) ranks.push_back(i);
  return std::make_shared<ProcessGroup>(ranks, rank);
}

}  // namespace kitchen::testing
