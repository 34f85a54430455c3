#include "kitchen/config/transformer_config.h"

#include "kitchen/base/error.h"

#include <fmt/format.h>

#include <cmath>

namespace kitchen {

namespace {

void require_positive(const char* name, std::int64_t value) {
  if (value < 1) throw ValueError(fmt::format("{} is {}, expected at least 1", name, value));
}

void require_positive(const char* name, const std::optional<std::int64_t>& value) {
  if (value) require_positive(name, *value);
}

void require_probability(const char* name, double value) {
  if (!(value >= 0.0 && value < 1.0)) {
    throw ValueError(fmt::format("{} is {}, expected at least 0 and below 1", name, value));
  }
}

bool one_divides_the_other(std::int64_t a, std::int64_t b) {
  return a % b == 0 || b % a == 0;
}

/// TP sizes that split `heads` evenly and either split or replicate whole query groups.
std::string allowed_tp_sizes(std::int64_t heads, std::int64_t groups) {
  std::vector<std::string> sizes;
  for (std::int64_t tp = 1; tp <= heads; ++tp) {
    if (heads % tp == 0 && one_divides_the_other(groups, tp)) sizes.push_back(std::to_string(tp));
  }
  return join_names(sizes);
}

void validate_heads(const TransformerConfig& config) {
  const std::int64_t heads = config.num_attention_heads;
  const std::int64_t groups = *config.num_query_groups;
  const std::int64_t tp = config.tensor_model_parallel_size;
  if (heads % groups != 0) {
    throw ValueError(fmt::format("num_attention_heads {} is not a multiple of num_query_groups {}",
                                 heads, groups));
  }
  if (heads % tp != 0) {
    throw ValueError(fmt::format(
        "num_attention_heads {} is not a multiple of tensor_model_parallel_size {}; allowed "
        "tensor_model_parallel_size: {}",
        heads, tp, allowed_tp_sizes(heads, groups)));
  }
  if (!one_divides_the_other(groups, tp)) {
    throw ValueError(fmt::format(
        "num_query_groups {} and tensor_model_parallel_size {}: one must divide the other; allowed "
        "tensor_model_parallel_size with {} heads: {}",
        groups, tp, heads, allowed_tp_sizes(heads, groups)));
  }
}

void validate_experts(const TransformerConfig& config) {
  if (!config.num_moe_experts) {
    if (config.expert_model_parallel_size > 1) {
      throw ValueError(fmt::format(
          "expert_model_parallel_size is {}, but num_moe_experts is not set; it needs experts",
          config.expert_model_parallel_size));
    }
    return;
  }
  require_positive("num_moe_experts", config.num_moe_experts);
  require_positive("moe_router_topk", config.moe_router_topk);
  if (config.moe_router_topk > *config.num_moe_experts) {
    throw ValueError(fmt::format("moe_router_topk is {}, but num_moe_experts is {}",
                                 config.moe_router_topk, *config.num_moe_experts));
  }
  if (const auto* pattern = std::get_if<std::vector<std::int64_t>>(&config.moe_layer_freq)) {
    if (static_cast<std::int64_t>(pattern->size()) != config.num_layers) {
      throw ValueError(fmt::format("moe_layer_freq lists {} layers, but num_layers is {}",
                                   pattern->size(), config.num_layers));
    }
  } else {
    require_positive("moe_layer_freq", std::get<std::int64_t>(config.moe_layer_freq));
  }
  if (config.add_bias_linear && *config.expert_tensor_parallel_size > 1) {
    throw AssertionError(fmt::format(
        "Bias in Moe is only supported when ETP==1, but expert_tensor_parallel_size is {}; set "
        "add_bias_linear to false",
        *config.expert_tensor_parallel_size));
  }
}

}  // namespace

double TransformerConfig::output_layer_init_std() const {
  return init_method_std / std::sqrt(2.0 * static_cast<double>(num_layers));
}

void TransformerConfig::finalize() {
  ModelParallelConfig::finalize();
  if (!num_query_groups) num_query_groups = num_attention_heads;
  if (!ffn_hidden_size) ffn_hidden_size = 4 * hidden_size;
  if (!kv_channels && num_attention_heads > 0) kv_channels = hidden_size / num_attention_heads;
  if (!moe_ffn_hidden_size && num_moe_experts) moe_ffn_hidden_size = ffn_hidden_size;
  if (apply_query_key_layer_scaling) attention_softmax_in_fp32 = true;
}

void TransformerConfig::validate() {
  require_positive("num_layers", num_layers);
  require_positive("hidden_size", hidden_size);
  require_positive("num_attention_heads", num_attention_heads);
  require_positive("num_query_groups", num_query_groups);
  require_positive("ffn_hidden_size", ffn_hidden_size);
  require_positive("kv_channels", kv_channels);
  require_positive("moe_ffn_hidden_size", moe_ffn_hidden_size);
  require_positive("moe_shared_expert_intermediate_size", moe_shared_expert_intermediate_size);
  if (!kv_channels && hidden_size % num_attention_heads != 0) {
    throw ValueError(fmt::format(
        "hidden_size {} is not a multiple of num_attention_heads {}; set kv_channels otherwise",
        hidden_size, num_attention_heads));
  }
  ModelParallelConfig::validate();
  require_probability("hidden_dropout", hidden_dropout);
  require_probability("attention_dropout", attention_dropout);
  if (!(layernorm_epsilon > 0.0)) {
    throw ValueError(
        fmt::format("layernorm_epsilon is {}, expected a number above 0", layernorm_epsilon));
  }
  if (!(init_method_std >= 0.0)) {
    throw ValueError(fmt::format("init_method_std is {}, expected at least 0", init_method_std));
  }
  validate_heads(*this);
  validate_experts(*this);
}

}  // namespace kitchen
