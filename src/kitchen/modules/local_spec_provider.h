#pragma once

#include "kitchen/modules/backend_spec_provider.h"

namespace kitchen {

/// Unquantized local classes: separate norms, local linears, local unfused attention.
class LocalSpecProvider : public BackendSpecProvider {
 public:
  [[nodiscard]] ModuleType column_parallel_linear() const override;
  [[nodiscard]] ModuleType row_parallel_linear() const override;
  [[nodiscard]] bool fuse_layernorm_and_linear() const override { return false; }
  [[nodiscard]] std::optional<ModuleType> column_parallel_layer_norm_linear() const override;
  [[nodiscard]] ModuleType layer_norm(bool rms_norm = false, bool for_qk = false) const override;
  [[nodiscard]] ModuleType core_attention() const override;
  [[nodiscard]] std::pair<ModuleType, std::optional<MLPSubmodules>> grouped_mlp_modules(
      bool moe_use_grouped_gemm, bool moe_use_legacy_grouped_gemm) const override;
  [[nodiscard]] std::optional<ModuleType> activation_func() const override { return std::nullopt; }
};

/// The same unquantized classes in the topology of the Transformer Engine provider: norms inside of the
/// linears that follow them.
class FusedSpecProvider : public LocalSpecProvider {
 public:
  [[nodiscard]] bool fuse_layernorm_and_linear() const override { return true; }
  [[nodiscard]] std::optional<ModuleType> column_parallel_layer_norm_linear() const override;
};

}  // namespace kitchen
