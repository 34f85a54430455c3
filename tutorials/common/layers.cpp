#include "common/layers.h"

#include "kitchen/autograd/backward.h"

namespace kitchen::tutorials {

TransformerConfig bf16_transformer(std::int64_t hidden_size, std::int64_t num_heads) {
  TransformerConfig config;
  config.num_layers = 1;
  config.hidden_size = hidden_size;
  config.num_attention_heads = num_heads;
  config.hidden_dropout = 0.0;
  config.attention_dropout = 0.0;
  config.params_dtype = DType::bfloat16;
  config.bf16 = true;
  return config;
}

QuantizationConfig configuration(const std::string& type, const std::string& key,
                                 const std::string& name) {
  return QuantizationConfig(ConfigDict{{"kitchen_config_type", type}, {key, name}},
                            MatchContext{"layer", std::nullopt}, name);
}

QuantizationConfig linear_recipe(const std::string& name) {
  return configuration("QLinearRecipe", "recipe", name);
}

std::int64_t saved_bytes(const Tensor& root) {
  std::int64_t bytes = 0;
  for (const autograd::TapeEntry& entry : autograd::describe_tape(root)) bytes += entry.saved_bytes;
  return bytes;
}

}  // namespace kitchen::tutorials
