#pragma once

#include "kitchen/modules/forward_interfaces.h"
#include "kitchen/modules/megatron_module.h"
#include "kitchen/modules/module_spec.h"
#include "kitchen/parallel/process_group_collection.h"

#include <optional>
#include <utility>

namespace kitchen {

/// Specs of the parts of SelfAttention.
struct SelfAttentionSubmodules {
  std::optional<ModuleSpec> linear_qkv;
  std::optional<ModuleSpec> core_attention;
  std::optional<ModuleSpec> linear_proj;
  std::optional<ModuleSpec> q_layernorm;
  std::optional<ModuleSpec> k_layernorm;
};

/// How positions enter the attention of a model.
struct RotaryOptions {
  double base = 10000.0;
  double percent = 1.0;  ///< share of the head size that is rotated
};

/// Projection to queries, keys and values, attention core, projection back.
///
/// linear_qkv gives, for each query group, its queries, its key and its value: [s, b, ng·(np/ng + 2)·hn].
class SelfAttention : public MegatronModule {
 public:
  /// @param rotary nullopt: no rotary position embedding.
  SelfAttention(std::shared_ptr<TransformerConfig> config, const SelfAttentionSubmodules& submodules,
                std::int64_t layer_number, AttnMaskType attn_mask_type,
                std::shared_ptr<const ProcessGroupCollection> pg_collection,
                std::optional<RotaryOptions> rotary);

  /// @param hidden [s, b, h]. @returns [s, b, h] and the bias that the caller adds.
  std::pair<Tensor, std::optional<Tensor>> forward(const Tensor& hidden,
                                                   const std::optional<Tensor>& attention_mask);

  std::shared_ptr<Module> linear_qkv;
  std::shared_ptr<Module> core_attention;
  std::shared_ptr<Module> linear_proj;
  std::shared_ptr<Module> q_layernorm;
  std::shared_ptr<Module> k_layernorm;

  [[nodiscard]] std::string class_name() const override { return "SelfAttention"; }
  static ModuleInfo module_info();

 private:
  struct QueryKeyValue;
  QueryKeyValue project(const Tensor& hidden);
  Tensor run_core(const QueryKeyValue& qkv, const std::optional<Tensor>& attention_mask);

  AttnMaskType attn_mask_type_;
  std::optional<RotaryOptions> rotary_;
  std::int64_t heads_;
  std::int64_t groups_;
  std::int64_t head_dim_;
};

}  // namespace kitchen
