#pragma once

#include "kitchen/config/transformer_config.h"
#include "kitchen/modules/packed_seq_params.h"
#include "kitchen/parallel/process_group.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace kitchen::modules {

/// Sizes and scale that all attention cores derive from the config in the same way.
struct AttentionGeometry {
  std::int64_t layer_number = 1;  ///< one-based; 0 becomes 1
  std::int64_t hidden_size_per_partition = 0;
  std::int64_t hidden_size_per_attention_head = 0;
  std::int64_t num_attention_heads_per_partition = 0;
  std::int64_t num_query_groups_per_partition = 0;
  double softmax_scale = 1.0;      ///< divided by layer_number under query-key layer scaling
  std::optional<double> coeff;     ///< layer_number under query-key layer scaling
  double attention_dropout = 0.0;  ///< probability
};

/// @throws AssertionError naming `class_name` for context parallelism, a window, missing kv_channels or sizes that
///         a division does not fit; NotImplementedError for other softmax types and for latent attention.
AttentionGeometry attention_geometry(const std::string& class_name, const TransformerConfig& config,
                                     std::int64_t layer_number, const ProcessGroup& tp_group,
                                     std::optional<double> attention_dropout,
                                     std::optional<double> softmax_scale);

/// Checks that come before the group is known: context parallelism and window.
void refuse_unsupported_attention(const std::string& class_name, const TransformerConfig& config);

/// @throws ValueError naming the operand and its shape unless query is [sq, b, np, hn] and key and value are
///         [sk, b, ng, hn] with the layer's local head counts.
void check_attention_inputs(const std::string& class_name, const AttentionGeometry& geometry,
                            const Tensor& query, const Tensor& key, const Tensor& value);

}  // namespace kitchen::modules
