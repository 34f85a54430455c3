#pragma once

#include "kitchen/modules/backend_spec_provider.h"

#include <memory>
#include <string>

namespace kitchen {

/// Names the Kitchen classes for the parts of a transformer layer; asks a fallback for the rest.
class KitchenSpecProvider : public BackendSpecProvider {
 public:
  /// @param kitchen_attention_backend "sdpa" or "fa"; judged only when core_attention is asked for.
  /// @throws TypeError without a fallback.
  explicit KitchenSpecProvider(std::shared_ptr<BackendSpecProvider> fallback,
                               bool use_kitchen_attention = false,
                               std::string kitchen_attention_backend = "sdpa");

  std::shared_ptr<BackendSpecProvider> fallback;
  bool use_kitchen_attention;
  std::string kitchen_attention_backend;

  /// KitchenColumnParallelLinear.
  [[nodiscard]] ModuleType column_parallel_linear() const override;
  /// KitchenRowParallelLinear.
  [[nodiscard]] ModuleType row_parallel_linear() const override;
  /// Ext: KitchenLinear.
  [[nodiscard]] ModuleType linear() const;
  /// The fallback's answer: it keeps the topology of the layer.
  [[nodiscard]] bool fuse_layernorm_and_linear() const override;
  /// KitchenLayerNormColumnParallelLinear, whatever the fallback fuses.
  [[nodiscard]] std::optional<ModuleType> column_parallel_layer_norm_linear() const override;
  /// The fallback's class for the same arguments.
  [[nodiscard]] ModuleType layer_norm(bool rms_norm = false, bool for_qk = false) const override;
  /// The fallback's class, KitchenDotProductAttention ("sdpa") or KitchenFlashAttention ("fa"); logs a
  /// warning that says which. @throws ValueError naming another backend text, if Kitchen attention is on.
  [[nodiscard]] ModuleType core_attention() const override;
  /// TEGroupedMLP over the grouped Kitchen linears, GroupedMLP (legacy, deprecated), or SequentialMLP over
  /// the column and row Kitchen linears.
  [[nodiscard]] std::pair<ModuleType, std::optional<MLPSubmodules>> grouped_mlp_modules(
      bool moe_use_grouped_gemm, bool moe_use_legacy_grouped_gemm) const override;
  /// The fallback's answer.
  [[nodiscard]] std::optional<ModuleType> activation_func() const override;
};

}  // namespace kitchen
