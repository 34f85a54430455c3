#pragma once

#include "kitchen/models/self_attention.h"
#include "kitchen/modules/mlp.h"
#include "kitchen/parallel/process_group_collection.h"

namespace kitchen {

/// Specs of the parts of TransformerLayer; a missing norm is the identity.
struct TransformerLayerSubmodules {
  std::optional<ModuleSpec> input_layernorm;
  std::optional<ModuleSpec> self_attention;
  std::optional<ModuleSpec> pre_mlp_layernorm;
  std::optional<ModuleSpec> mlp;
};

/// norm -> attention -> bias, dropout, add -> norm -> MLP -> bias, dropout, add (pre-norm).
class TransformerLayer : public MegatronModule {
 public:
  /// @param layer_number one-based and global.
  TransformerLayer(std::shared_ptr<TransformerConfig> config,
                   const TransformerLayerSubmodules& submodules, std::int64_t layer_number,
                   std::shared_ptr<const ProcessGroupCollection> pg_collection,
                   std::optional<RotaryOptions> rotary);

  /// @param hidden [s, b, h]. @returns [s, b, h].
  Tensor forward(const Tensor& hidden, const std::optional<Tensor>& attention_mask);

  std::int64_t layer_number;
  std::shared_ptr<Module> input_layernorm;
  std::shared_ptr<SelfAttention> self_attention;
  std::shared_ptr<Module> pre_mlp_layernorm;
  std::shared_ptr<MLP> mlp;

  [[nodiscard]] std::string class_name() const override { return "TransformerLayer"; }
  static ModuleInfo module_info();

 private:
  Tensor bias_dropout_add(const std::pair<Tensor, std::optional<Tensor>>& x, const Tensor& residual);
};

}  // namespace kitchen
