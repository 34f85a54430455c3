#include "kitchen/modules/attention_geometry.h"

#include "kitchen/base/error.h"

#include <algorithm>
#include <cmath>

namespace kitchen::modules {

namespace {

void check_operand(const std::string& class_name, const char* operand, const Tensor& tensor,
                   std::int64_t heads, std::int64_t head_dim) {
  const bool fits = tensor.defined() && tensor.rank() == 4 && tensor.dim(2) == heads &&
                    tensor.dim(3) == head_dim;
  if (fits) return;
  throw ValueError(class_name + ": " + operand + " has shape " +
                   (tensor.defined() ? to_string(tensor.shape()) : std::string("(undefined)")) +
                   ", expected [sequence, batch, " + std::to_string(heads) + ", " +
                   std::to_string(head_dim) + "]");
}

}  // namespace

void refuse_unsupported_attention(const std::string& class_name, const TransformerConfig& config) {
  if (config.context_parallel_size != 1) {
    throw AssertionError(class_name + ": Context parallelism is not supported; context_parallel_size is " +
                         std::to_string(config.context_parallel_size) + ", expected 1");
  }
  if (config.window_size) {
    throw AssertionError(class_name + ": Sliding Window Attention is not supported; leave window_size "
                         "unset");
  }
  if (!config.kv_channels) throw AssertionError(class_name + ": kv_channels must be set");
}

AttentionGeometry attention_geometry(const std::string& class_name, const TransformerConfig& config,
                                     std::int64_t layer_number, const ProcessGroup& tp_group,
                                     std::optional<double> attention_dropout,
                                     std::optional<double> softmax_scale) {
  const std::int64_t heads = config.num_attention_heads;
  const std::int64_t groups = config.num_query_groups.value_or(heads);
  const std::int64_t projection = *config.kv_channels * heads;
  const std::int64_t world = tp_group.size();
  AttentionGeometry geometry;
  geometry.layer_number = std::max<std::int64_t>(1, layer_number);
  geometry.hidden_size_per_partition = divide(projection, world);
  geometry.hidden_size_per_attention_head = divide(projection, heads);
  geometry.num_attention_heads_per_partition = divide(heads, world);
  geometry.num_query_groups_per_partition = divide(groups, world);
  geometry.softmax_scale = softmax_scale.value_or(
      1.0 / std::sqrt(static_cast<double>(geometry.hidden_size_per_attention_head)));
  if (config.apply_query_key_layer_scaling) {
    geometry.coeff = static_cast<double>(geometry.layer_number);
    geometry.softmax_scale /= *geometry.coeff;
  }
  geometry.attention_dropout = attention_dropout.value_or(config.attention_dropout);
  if (config.softmax_type != "vanilla") {
    throw NotImplementedError(class_name + ": softmax_type '" + config.softmax_type +
                              "' is not supported; use 'vanilla'");
  }
  if (config.multi_latent_attention) {
    throw NotImplementedError(class_name + ": multi_latent_attention is not supported");
  }
  return geometry;
}

void check_attention_inputs(const std::string& class_name, const AttentionGeometry& geometry,
                            const Tensor& query, const Tensor& key, const Tensor& value) {
  const std::int64_t head_dim = geometry.hidden_size_per_attention_head;
  check_operand(class_name, "query", query, geometry.num_attention_heads_per_partition, head_dim);
  check_operand(class_name, "key", key, geometry.num_query_groups_per_partition, head_dim);
  check_operand(class_name, "value", value, geometry.num_query_groups_per_partition, head_dim);
}

}  // namespace kitchen::modules
