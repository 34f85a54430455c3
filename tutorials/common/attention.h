#pragma once

#include "common/layers.h"

#include "kitchen/modules/forward_interfaces.h"
#include "kitchen/parallel/process_group_collection.h"
#include "kitchen/parallel/rng_tracker.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace kitchen::tutorials {

/// Sizes of a self-attention with one batch entry: s tokens, heads of head_dim features.
struct AttentionSizes {
  std::int64_t seq_length = 128;
  std::int64_t num_heads = 4;
  std::int64_t head_dim = 64;
};

/// q, k, v [s, 1, heads, head_dim] and the gradient dout [s, 1, heads·head_dim] of the output.
struct AttentionInputs {
  Tensor q, k, v, dout;
};

/// Normal numbers in bfloat16.
AttentionInputs attention_inputs(const ContextPtr& context, const AttentionSizes& sizes);

/// The output and the gradients of the three inputs.
struct AttentionOutputs {
  Tensor out, dq, dk, dv;
};

/// Forward and backward of one attention core.
AttentionOutputs run_attention(modules::ForwardAttention& core, const AttentionInputs& in);

/// A causal core of a Kitchen class that follows `recipe`.
template <class Core>
std::shared_ptr<Core> make_attention(const AttentionSizes& sizes,
                                     const QuantizationConfig& recipe) {
  model_parallel_cuda_manual_seed(1);  // dropout asks for a seed, whatever its probability
  TransformerConfig config = bf16_transformer(sizes.num_heads * sizes.head_dim, sizes.num_heads);
  config.kv_channels = sizes.head_dim;
  auto core = std::make_shared<Core>(make_config(config), /*layer_number=*/1, AttnMaskType::causal,
                                     "self", /*attention_dropout=*/0.0, std::nullopt, std::nullopt,
                                     ProcessGroupCollection::use_mpu_process_groups());
  core->finish_init(recipe);
  return core;
}

/// What finish_init of an attention core takes to follow a predefined recipe.
QuantizationConfig attention_recipe(const std::string& name);
QuantizationConfig flash_recipe(const std::string& name);

}  // namespace kitchen::tutorials
