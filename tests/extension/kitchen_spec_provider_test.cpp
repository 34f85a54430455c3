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
#include "kitchen/modules/local_spec_provider.h"
#include "kitchen/modules/moe_experts.h"
#include "kitchen/modules/norm_module.h"
#include "support/expect_error.h"

#include <gtest/gtest.h>

namespace kitchen {
namespace {

using testing::throws;

/// A fallback that notes how layer_norm was asked, and has an activation.
class NotingProvider : public LocalSpecProvider {
 public:
  [[nodiscard]] ModuleType layer_norm(bool rms_norm, bool for_qk) const override {
    calls.emplace_back(rms_norm, for_qk);
    return LocalSpecProvider::layer_norm(rms_norm, for_qk);
  }
  [[nodiscard]] std::optional<ModuleType> activation_func() const override {
    return module_type<IdentityOp>();
  }
  mutable std::vector<std::pair<bool, bool>> calls;
};

const auto kLocal = std::make_shared<LocalSpecProvider>();
const auto kFused = std::make_shared<FusedSpecProvider>();

// labels: KitchenSpecProvider
TEST(KitchenSpecProvider, MembersAndDefaults) {
  const KitchenSpecProvider provider(kLocal);
  EXPECT_EQ(provider.fallback, kLocal);
  EXPECT_FALSE(provider.use_kitchen_attention);
  EXPECT_EQ(provider.kitchen_attention_backend, "sdpa");
  EXPECT_TRUE(throws<TypeError>([] { KitchenSpecProvider(nullptr); }, {"fallback is null"}));
  EXPECT_NO_THROW(KitchenSpecProvider(kLocal, true, "anything"));
}

// labels: KitchenSpecProvider.column_parallel_linear KitchenSpecProvider.row_parallel_linear D11
TEST(KitchenSpecProvider, NamesTheKitchenLinears) {
  for (const std::shared_ptr<BackendSpecProvider>& fallback :
       std::vector<std::shared_ptr<BackendSpecProvider>>{kLocal, kFused}) {
    const KitchenSpecProvider provider(fallback);
    EXPECT_EQ(provider.column_parallel_linear(), module_type<KitchenColumnParallelLinear>());
    EXPECT_EQ(provider.row_parallel_linear(), module_type<KitchenRowParallelLinear>());
    EXPECT_EQ(provider.linear(), module_type<KitchenLinear>());
    EXPECT_EQ(provider.column_parallel_linear().name(), "KitchenColumnParallelLinear");
  }
}

// labels: KitchenSpecProvider.fuse_layernorm_and_linear KitchenSpecProvider.column_parallel_layer_norm_linear
TEST(KitchenSpecProvider, TheFallbackDecidesTheTopology) {
  EXPECT_FALSE(KitchenSpecProvider(kLocal).fuse_layernorm_and_linear());
  EXPECT_TRUE(KitchenSpecProvider(kFused).fuse_layernorm_and_linear());
  for (const std::shared_ptr<BackendSpecProvider>& fallback :
       std::vector<std::shared_ptr<BackendSpecProvider>>{kLocal, kFused}) {
    EXPECT_EQ(KitchenSpecProvider(fallback).column_parallel_layer_norm_linear(),
              module_type<KitchenLayerNormColumnParallelLinear>());
  }
}

// labels: KitchenSpecProvider.layer_norm KitchenSpecProvider.activation_func D34
TEST(KitchenSpecProvider, NormAndActivationAreTheFallbacks) {
  const auto noting = std::make_shared<NotingProvider>();
  const KitchenSpecProvider provider(noting);
  EXPECT_EQ(provider.layer_norm(), module_type<LayerNormImpl>());
  EXPECT_EQ(provider.layer_norm(true, false), module_type<RMSNormImpl>());
  (void)provider.layer_norm(false, true);
  EXPECT_EQ(noting->calls,
            (std::vector<std::pair<bool, bool>>{{false, false}, {true, false}, {false, true}}));
  EXPECT_EQ(provider.activation_func(), module_type<IdentityOp>());
  EXPECT_EQ(KitchenSpecProvider(kLocal).activation_func(), std::nullopt);
}

// labels: KitchenSpecProvider.core_attention D39
TEST(KitchenSpecProvider, AttentionWarnsOnEveryCall) {
  const LogCapture log;
  const auto warnings = [&] { return log.count(LogLevel::warning, "KitchenSpecProvider"); };
  const KitchenSpecProvider off(kLocal, false, "anything");
  EXPECT_EQ(off.core_attention(), module_type<DotProductAttention>());
  EXPECT_EQ(off.core_attention(), module_type<DotProductAttention>());
  EXPECT_EQ(warnings(), 2);
  EXPECT_EQ(KitchenSpecProvider(kFused, true, "sdpa").core_attention(),
            module_type<KitchenDotProductAttention>());
  EXPECT_EQ(KitchenSpecProvider(kFused, true, "fa").core_attention(),
            module_type<KitchenFlashAttention>());
  EXPECT_EQ(warnings(), 4);
  EXPECT_TRUE(throws<ValueError>([] { (void)KitchenSpecProvider(kLocal, true, "SDPA").core_attention(); },
                                 {"SDPA", "'sdpa' or 'fa'"}));
}

// labels: KitchenSpecProvider.grouped_mlp_modules D36
TEST(KitchenSpecProvider, ExpertClassesFollowTheFlags) {
  const KitchenSpecProvider provider(kLocal);
  const LogCapture log;
  for (const bool legacy : {false, true}) {
    const auto [type, parts] = provider.grouped_mlp_modules(false, legacy);
    EXPECT_EQ(type, module_type<SequentialMLP>());
    ASSERT_TRUE(parts);
    EXPECT_EQ(parts->linear_fc1->module, module_type<KitchenColumnParallelLinear>());
    EXPECT_EQ(parts->linear_fc2->module, module_type<KitchenRowParallelLinear>());
    EXPECT_FALSE(parts->activation_func);
  }
  const auto [grouped, grouped_parts] = provider.grouped_mlp_modules(true, false);
  EXPECT_EQ(grouped, module_type<TEGroupedMLP>());
  ASSERT_TRUE(grouped_parts);
  EXPECT_EQ(grouped_parts->linear_fc1->module, module_type<KitchenColumnParallelGroupedLinear>());
  EXPECT_EQ(grouped_parts->linear_fc2->module, module_type<KitchenRowParallelGroupedLinear>());
  EXPECT_FALSE(grouped_parts->activation_func);
  EXPECT_EQ(log.count(LogLevel::warning, "deprecated"), 0);
  const auto [type, parts] = provider.grouped_mlp_modules(true, true);
  EXPECT_EQ(type, module_type<GroupedMLP>());
  EXPECT_FALSE(parts);
  EXPECT_EQ(log.count(LogLevel::warning, "deprecated"), 1);
}

}  // namespace
}  // namespace kitchen
