#pragma once

#include "kitchen/modules/attention_geometry.h"
#include "kitchen/modules/dropout.h"
#include "kitchen/modules/fused_scale_mask_softmax.h"
#include "kitchen/recipes/q_attention_params.h"

namespace kitchen::modules {

/// The parts of an unfused attention core besides its inputs.
struct UnfusedAttention {
  const AttentionGeometry* geometry = nullptr;
  FusedScaleMaskSoftmax* scale_mask_softmax = nullptr;
  Dropout* attention_dropout = nullptr;
  bool sequence_parallel = false;
  std::shared_ptr<const QAttentionParams> params;  ///< null: unquantized
  std::string module;
};

/// Scores, softmax, dropout, context: query [sq, b, np, hn], key and value [sk, b, ng, hn] ->
/// [sq, b, np·hn]. Probabilities are never quantized before the softmax; dropout draws from the tracker's
/// model-parallel state, or from the default one under sequence parallelism.
/// @throws RuntimeError "is not added" if the tracker was not seeded.
Tensor unfused_attention(const UnfusedAttention& core, const Tensor& query, const Tensor& key,
                         const Tensor& value, const std::optional<Tensor>& attention_mask);

}  // namespace kitchen::modules
