#pragma once

#include "kitchen/base/context.h"
#include "kitchen/config/transformer_config.h"
#include "kitchen/extension/kitchen_spec_provider.h"
#include "kitchen/models/gpt_layer_specs.h"
#include "kitchen/models/gpt_model.h"
#include "kitchen/modules/local_spec_provider.h"
#include "kitchen/parallel/rng_tracker.h"
#include "support/values.h"

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

/// @file  tiny_gpt.h
/// @brief A GPT small enough to check every gradient of it.

namespace kitchen::testing {

inline constexpr std::int64_t kVocab = 11;
inline constexpr std::int64_t kSeq = 4;
inline constexpr std::int64_t kBatch = 2;

/// What varies between the tests' models.
struct TinyGPT {
  std::string positions = "learned_absolute";
  bool tied = true;
  bool fused = false;  ///< norms inside of the linears
  TransformerConfig config = default_config();
  double rotary_percent = 1.0;

  static TransformerConfig default_config() {
    TransformerConfig c;
    c.num_layers = 1;
    c.hidden_size = 8;
    c.num_attention_heads = 2;
    c.hidden_dropout = 0.0;
    c.attention_dropout = 0.0;
    return c;
  }
};

/// The model on a context with poisoned memory that all models share; equal seeds give equal
/// weights.
inline std::shared_ptr<GPTModel> build(const TinyGPT& tiny, std::uint64_t seed = 7) {
  static const ContextPtr context = poisoned_context();
  set_default_context(context);
  model_parallel_cuda_manual_seed(seed);
  const auto config = make_config(tiny.config);
  std::shared_ptr<BackendSpecProvider> provider = std::make_shared<LocalSpecProvider>();
  if (tiny.fused) provider = std::make_shared<FusedSpecProvider>();
  if (config->use_kitchen) {
    provider = std::make_shared<KitchenSpecProvider>(provider, config->use_kitchen_attention,
                                                     config->kitchen_attention_backend);
  }
  GPTModelOptions options;
  options.vocab_size = kVocab;
  options.max_sequence_length = kSeq;
  options.share_embeddings_and_output_weights = tiny.tied;
  options.position_embedding_type = tiny.positions;
  options.rotary = {100.0, tiny.rotary_percent};
  return std::make_shared<GPTModel>(config, gpt_block_submodules(*provider, *config), options);
}

using Weights = std::map<std::string, std::vector<double>>;

/// Values in [-1/2, 1/2), around 1 for norm weights: large enough that every part of the model
/// matters.
inline Weights fill(GPTModel& model) {
  Weights weights;
  StateDict state;
  std::uint64_t seed = 1;
  for (const auto& [name, parameter] : model.named_parameters()) {
    std::vector<double> values = grid_values(parameter->numel(), ++seed);
    const bool is_norm_weight =
        name.find("norm") != std::string::npos && name.find("weight") == name.size() - 6;
    for (double& value : values) value = value / 8 + (is_norm_weight ? 1.0 : 0.0);
    state.set(name, tensor_of(parameter->context(), parameter->shape(), DType::float32, values));
    weights[name] = std::move(values);
  }
  model.load_state_dict(state);
  return weights;
}

inline const std::vector<std::int64_t>& tokens() {
  static const std::vector<std::int64_t> ids{3, 1, 4, 1, 5, 9, 2, 6};
  return ids;
}

inline const std::vector<std::int64_t>& labels() {
  static const std::vector<std::int64_t> ids{1, 4, 1, -100, 9, 2, 6, 10};
  return ids;
}

inline Tensor ids_of(const GPTModel& model, const std::vector<std::int64_t>& ids) {
  return Tensor::from_vector(model.embedding->word_embeddings->weight.context(), {kBatch, kSeq},
                             ids);
}

/// Losses [kBatch, kSeq] of tokens() and labels().
inline Tensor losses(GPTModel& model) {
  return model.forward(ids_of(model, tokens()), ids_of(model, {0, 1, 2, 3, 0, 1, 2, 3}),
                       std::nullopt, ids_of(model, labels()));
}

inline Tensor logits(GPTModel& model) {
  return model.forward(ids_of(model, tokens()), ids_of(model, {0, 1, 2, 3, 0, 1, 2, 3}),
                       std::nullopt);
}

}  // namespace kitchen::testing
