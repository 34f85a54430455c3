#pragma once

#include "kitchen/modules/mlp.h"
#include "kitchen/modules/module_spec.h"

#include <optional>
#include <utility>

namespace kitchen {

/// Answers which classes a transformer layer is built from.
class BackendSpecProvider {
 public:
  virtual ~BackendSpecProvider() = default;

  [[nodiscard]] virtual ModuleType column_parallel_linear() const = 0;
  [[nodiscard]] virtual ModuleType row_parallel_linear() const = 0;
  /// One module for norm and linear.
  [[nodiscard]] virtual bool fuse_layernorm_and_linear() const = 0;
  [[nodiscard]] virtual std::optional<ModuleType> column_parallel_layer_norm_linear() const = 0;
  [[nodiscard]] virtual ModuleType layer_norm(bool rms_norm = false, bool for_qk = false) const = 0;
  [[nodiscard]] virtual ModuleType core_attention() const = 0;
  /// The class of the experts, and the parts of each.
  [[nodiscard]] virtual std::pair<ModuleType, std::optional<MLPSubmodules>> grouped_mlp_modules(
      bool moe_use_grouped_gemm, bool moe_use_legacy_grouped_gemm) const = 0;
  /// nullopt: the config's activation function.
  [[nodiscard]] virtual std::optional<ModuleType> activation_func() const = 0;
};

}  // namespace kitchen
