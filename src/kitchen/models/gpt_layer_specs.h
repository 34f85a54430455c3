#pragma once

#include "kitchen/models/transformer_block.h"
#include "kitchen/modules/backend_spec_provider.h"

#include <memory>

/// @file  gpt_layer_specs.h
/// @brief Layers of a GPT from what a provider names. The provider decides classes, not the model.

namespace kitchen {

/// Spec of one dense layer.
///
/// With a provider that fuses, the norm is inside of linear_qkv and linear_fc1, and the layer's own norms are
/// identities; otherwise they are separate modules.
/// @throws ValueError if normalization is neither LayerNorm nor RMSNorm; NotImplementedError for experts or latent attention in `config`.
ModuleSpec gpt_layer_spec(const BackendSpecProvider& provider, const TransformerConfig& config);

/// num_layers such layers and the final norm.
TransformerBlockSubmodules gpt_block_submodules(const BackendSpecProvider& provider,
                                                const TransformerConfig& config);

}  // namespace kitchen
