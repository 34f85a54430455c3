#include "kitchen/modules/unfused_attention.h"

#include "kitchen/autograd/node.h"
#include "kitchen/autograd/view_functions.h"
#include "kitchen/modules/quantized_bmm.h"
#include "kitchen/parallel/rng_tracker.h"

namespace kitchen::modules {

Tensor unfused_attention(const UnfusedAttention& core, const Tensor& query, const Tensor& key,
                         const Tensor& value, const std::optional<Tensor>& attention_mask) {
  const AttentionGeometry& geometry = *core.geometry;
  const std::int64_t repeats =
      geometry.num_attention_heads_per_partition / geometry.num_query_groups_per_partition;
  const Tensor k = autograd::repeat_interleave(key, 2, repeats);
  const Tensor v = autograd::repeat_interleave(value, 2, repeats);
  const std::int64_t sq = query.dim(0);
  const std::int64_t sk = k.dim(0);
  const std::int64_t b = query.dim(1);
  const std::int64_t heads = query.dim(2);
  const std::int64_t head_dim = query.dim(3);
  const bool records = autograd::grad_enabled();
  const auto bmm = [&](const Tensor& left, const Tensor& right, float alpha, bool is_bmm2) {
    return QuantizedBMM::apply(left, right, alpha, is_bmm2, records, geometry.layer_number,
                               core.params, core.module);
  };

  const Tensor q_slices =
      autograd::transpose(autograd::reshape(query, {sq, b * heads, head_dim}), 0, 1);
  const Tensor k_slices =
      autograd::permute(autograd::reshape(k, {sk, b * heads, head_dim}), {1, 2, 0});
  const Tensor scores = bmm(q_slices, k_slices, static_cast<float>(geometry.softmax_scale), false);
  Tensor probs = core.scale_mask_softmax->forward(
      autograd::reshape(scores, {b, heads, sq, sk}), attention_mask);
  if (core.sequence_parallel) {
    probs = core.attention_dropout->forward(probs);
  } else {
    const RngTracker::Fork fork = get_cuda_rng_tracker().fork();
    probs = core.attention_dropout->forward(probs);
  }
  const Tensor v_slices =
      autograd::transpose(autograd::reshape(v, {sk, b * heads, head_dim}), 0, 1);
  const Tensor context =
      bmm(autograd::reshape(probs, {b * heads, sq, sk}), v_slices, 1.0f, true);
  const Tensor ordered = autograd::contiguous(
      autograd::permute(autograd::reshape(context, {b, heads, sq, head_dim}), {2, 0, 1, 3}));
  return autograd::reshape(ordered, {sq, b, heads * head_dim});
}

}  // namespace kitchen::modules
