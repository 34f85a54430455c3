#pragma once

#include "kitchen/autograd/backward.h"
#include "kitchen/base/rng.h"
#include "kitchen/extension/kitchen_dot_product_attention.h"
#include "kitchen/extension/kitchen_flash_attention.h"
#include "kitchen/ops/elementwise.h"
#include "support/layers.h"

#include <memory>
#include <optional>
#include <vector>

/// @file  kitchen_attention.h
/// @brief Attention cores with their inputs, run forward and backward.

namespace kitchen::testing {

/// What an attention core is built from besides its class.
struct CoreSettings {
  std::int64_t heads = 2;
  std::int64_t groups = 2;
  std::int64_t head_size = 8;
  bool bf16 = false;
  std::int64_t layer_number = 1;
  AttnMaskType mask_type = AttnMaskType::causal;
  double dropout = 0.0;
  std::optional<double> softmax_scale;
  bool layer_scaling = false;
};

inline std::shared_ptr<TransformerConfig> core_config(const CoreSettings& s) {
  TransformerConfig config = s.bf16 ? bf16_transformer() : small_transformer();
  config.hidden_size = s.heads * s.head_size;
  config.num_attention_heads = s.heads;
  config.num_query_groups = s.groups;
  config.kv_channels = s.head_size;
  config.apply_query_key_layer_scaling = s.layer_scaling;
  return make_config(config);
}

/// A core of class T, with finish_init done where T has it.
template <class T>
std::shared_ptr<T> make_core(const CoreSettings& s, const QuantizationConfig& recipe) {
  auto core = std::make_shared<T>(core_config(s), s.layer_number, s.mask_type, "self", s.dropout,
                                  s.softmax_scale, std::nullopt,
                                  ProcessGroupCollection::use_mpu_process_groups());
  if (auto* deferred = dynamic_cast<FinishInit*>(core.get())) deferred->finish_init(recipe);
  return core;
}

/// q, k, v, dout of standard normal numbers, rounded to `dtype`. dout is [sq, b, np·hn].
struct AttentionInputs {
  Tensor q, k, v, dout;
};

inline Tensor normal_tensor(const ContextPtr& context, const Shape& shape, DType dtype,
                            std::uint64_t stream) {
  std::vector<float> values(static_cast<std::size_t>(num_elements(shape)));
  const Rng rng{2024, stream};
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(normal_at(rng, i));
  }
  return ops::cast(Tensor::from_vector(context, shape, values), dtype);
}

inline AttentionInputs attention_inputs(const ContextPtr& context, const CoreSettings& s,
                                        std::int64_t sq, std::int64_t batch) {
  const DType dtype = s.bf16 ? DType::bfloat16 : DType::float32;
  return {normal_tensor(context, {sq, batch, s.heads, s.head_size}, dtype, 1),
          normal_tensor(context, {sq, batch, s.groups, s.head_size}, dtype, 2),
          normal_tensor(context, {sq, batch, s.groups, s.head_size}, dtype, 3),
          normal_tensor(context, {sq, batch, s.heads * s.head_size}, dtype, 4)};
}

/// out and the gradients of q, k, v.
struct AttentionOutputs {
  Tensor out, dq, dk, dv;
};

inline AttentionOutputs run_core(modules::ForwardAttention& core, const AttentionInputs& in,
                                 const std::optional<Tensor>& mask = std::nullopt) {
  const Tensor q = in.q.detach();
  const Tensor k = in.k.detach();
  const Tensor v = in.v.detach();
  for (const Tensor& leaf : {q, k, v}) autograd::set_requires_grad(leaf);
  const Tensor out = core.forward(q, k, v, mask);
  autograd::backward(out, in.dout);
  return {out.detach(), autograd::grad_of(q), autograd::grad_of(k), autograd::grad_of(v)};
}

}  // namespace kitchen::testing
