#include "kitchen/extension/kitchen_spec_provider.h"

#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/extension/kitchen_column_parallel_grouped_linear.h"
#include "kitchen/extension/kitchen_column_parallel_linear.h"
#include "kitchen/extension/kitchen_dot_product_attention.h"
#include "kitchen/extension/kitchen_flash_attention.h"
#include "kitchen/extension/kitchen_layer_norm_column_parallel_linear.h"
#include "kitchen/extension/kitchen_row_parallel_grouped_linear.h"
#include "kitchen/extension/kitchen_row_parallel_linear.h"
#include "kitchen/modules/moe_experts.h"

namespace kitchen {

KitchenSpecProvider::KitchenSpecProvider(std::shared_ptr<BackendSpecProvider> fallback_provider,
                                         bool kitchen_attention, std::string attention_backend)
    : fallback(std::move(fallback_provider)),
      use_kitchen_attention(kitchen_attention),
      kitchen_attention_backend(std::move(attention_backend)) {
  if (!fallback) throw TypeError("KitchenSpecProvider: fallback is null; pass a BackendSpecProvider");
}

ModuleType KitchenSpecProvider::column_parallel_linear() const {
  return module_type<KitchenColumnParallelLinear>();
}

ModuleType KitchenSpecProvider::row_parallel_linear() const {
  return module_type<KitchenRowParallelLinear>();
}

ModuleType KitchenSpecProvider::linear() const { return module_type<KitchenLinear>(); }

bool KitchenSpecProvider::fuse_layernorm_and_linear() const {
  return fallback->fuse_layernorm_and_linear();
}

std::optional<ModuleType> KitchenSpecProvider::column_parallel_layer_norm_linear() const {
  return module_type<KitchenLayerNormColumnParallelLinear>();
}

ModuleType KitchenSpecProvider::layer_norm(bool rms_norm, bool for_qk) const {
  return fallback->layer_norm(rms_norm, for_qk);
}

ModuleType KitchenSpecProvider::core_attention() const {
  if (!use_kitchen_attention) {
    logger().warning("KitchenSpecProvider: Kitchen attention is off, attention is the fallback's");
    return fallback->core_attention();
  }
  if (kitchen_attention_backend == "sdpa") {
    logger().warning("KitchenSpecProvider: attention is KitchenDotProductAttention");
    return module_type<KitchenDotProductAttention>();
  }
  if (kitchen_attention_backend == "fa") {
    logger().warning("KitchenSpecProvider: attention is KitchenFlashAttention");
    return module_type<KitchenFlashAttention>();
  }
  throw ValueError("KitchenSpecProvider: kitchen_attention_backend is '" + kitchen_attention_backend +
                   "', expected 'sdpa' or 'fa'");
}

std::pair<ModuleType, std::optional<MLPSubmodules>> KitchenSpecProvider::grouped_mlp_modules(
    bool moe_use_grouped_gemm, bool moe_use_legacy_grouped_gemm) const {
  if (moe_use_grouped_gemm && !moe_use_legacy_grouped_gemm) {
    MLPSubmodules parts;
    parts.linear_fc1 = module_type<KitchenColumnParallelGroupedLinear>();
    parts.linear_fc2 = module_type<KitchenRowParallelGroupedLinear>();
    return {module_type<TEGroupedMLP>(), parts};
  }
  if (moe_use_grouped_gemm) {
    logger().warning("KitchenSpecProvider: the legacy GroupedMLP is deprecated and not quantized");
    return {module_type<GroupedMLP>(), std::nullopt};
  }
  MLPSubmodules parts;
  parts.linear_fc1 = column_parallel_linear();
  parts.linear_fc2 = row_parallel_linear();
  return {module_type<SequentialMLP>(), parts};
}

std::optional<ModuleType> KitchenSpecProvider::activation_func() const {
  return fallback->activation_func();
}

}  // namespace kitchen
