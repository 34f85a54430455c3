#include "common/attention.h"

#include "common/data.h"

#include "kitchen/autograd/backward.h"
#include "kitchen/ops/elementwise.h"

namespace kitchen::tutorials {

AttentionInputs attention_inputs(const ContextPtr& context, const AttentionSizes& sizes) {
  const Shape rows{sizes.seq_length, 1, sizes.num_heads, sizes.head_dim};
  const Shape merged{sizes.seq_length, 1, sizes.num_heads * sizes.head_dim};
  const auto bf16 = [&](const Shape& shape, std::uint64_t seed) {
    return ops::cast(normal_tensor(context, shape, seed), DType::bfloat16);
  };
  return {bf16(rows, 1), bf16(rows, 2), bf16(rows, 3), bf16(merged, 4)};
}

AttentionOutputs run_attention(modules::ForwardAttention& core, const AttentionInputs& in) {
  const Tensor q = in.q.detach();
  const Tensor k = in.k.detach();
  const Tensor v = in.v.detach();
  for (const Tensor& leaf : {q, k, v}) autograd::set_requires_grad(leaf);
  const Tensor out = core.forward(q, k, v, std::nullopt);
  autograd::backward(out, in.dout);
  return {out.detach(), autograd::grad_of(q), autograd::grad_of(k), autograd::grad_of(v)};
}

QuantizationConfig attention_recipe(const std::string& name) {
  return configuration("QAttentionRecipe", "recipe", name);
}

QuantizationConfig flash_recipe(const std::string& name) {
  return configuration("QFlashAttentionParams", "recipe_name", name);
}

}  // namespace kitchen::tutorials
