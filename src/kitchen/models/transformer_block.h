#pragma once

#include "kitchen/models/transformer_layer.h"
#include "kitchen/parallel/process_group_collection.h"

#include <vector>

namespace kitchen {

/// Specs of a stack of layers.
struct TransformerBlockSubmodules {
  std::vector<ModuleSpec> layer_specs;
  std::optional<ModuleSpec> layer_norm;  ///< final norm; nullopt: none
};

/// The layers of a model, `layers.0` ..., and the final norm.
class TransformerBlock : public MegatronModule {
 public:
  TransformerBlock(std::shared_ptr<TransformerConfig> config,
                   const TransformerBlockSubmodules& submodules,
                   std::shared_ptr<const ProcessGroupCollection> pg_collection,
                   std::optional<RotaryOptions> rotary);

  /// @param hidden [s, b, h]. @returns [s, b, h].
  Tensor forward(Tensor hidden, const std::optional<Tensor>& attention_mask);

  /// Layers share keys and differ by an offset along a leading axis of num_layers.
  ShardedStateDict sharded_state_dict(const std::string& prefix = "",
                                      const ShardedOffsets& sharded_offsets = {},
                                      const Metadata* metadata = nullptr) override;

  std::vector<std::shared_ptr<TransformerLayer>> layers;
  std::shared_ptr<Module> final_layernorm;

  [[nodiscard]] std::string class_name() const override { return "TransformerBlock"; }

 private:
  /// Holds the layers under decimal names.
  class LayerList;
};

}  // namespace kitchen
