#include "kitchen/modules/local_spec_provider.h"

#include "kitchen/modules/column_parallel_linear.h"
#include "kitchen/modules/dot_product_attention.h"
#include "kitchen/modules/fused_layer_norm_column_parallel_linear.h"
#include "kitchen/modules/moe_experts.h"
#include "kitchen/modules/norm_module.h"
#include "kitchen/modules/row_parallel_linear.h"

namespace kitchen {

ModuleType LocalSpecProvider::column_parallel_linear() const {
  return module_type<ColumnParallelLinear>();
}

ModuleType LocalSpecProvider::row_parallel_linear() const { return module_type<RowParallelLinear>(); }

std::optional<ModuleType> LocalSpecProvider::column_parallel_layer_norm_linear() const {
  return std::nullopt;
}

ModuleType LocalSpecProvider::layer_norm(bool rms_norm, bool /*for_qk*/) const {
  return rms_norm ? module_type<RMSNormImpl>() : module_type<LayerNormImpl>();
}

ModuleType LocalSpecProvider::core_attention() const { return module_type<DotProductAttention>(); }

std::pair<ModuleType, std::optional<MLPSubmodules>> LocalSpecProvider::grouped_mlp_modules(
    bool moe_use_grouped_gemm, bool /*moe_use_legacy_grouped_gemm*/) const {
  if (moe_use_grouped_gemm) return {module_type<GroupedMLP>(), std::nullopt};
  MLPSubmodules parts;
  parts.linear_fc1 = column_parallel_linear();
  parts.linear_fc2 = row_parallel_linear();
  return {module_type<SequentialMLP>(), parts};
}

std::optional<ModuleType> FusedSpecProvider::column_parallel_layer_norm_linear() const {
  return module_type<FusedLayerNormColumnParallelLinear>();
}

}  // namespace kitchen
