#pragma once

#include "kitchen/modules/forward_interfaces.h"
#include "kitchen/modules/megatron_module.h"
#include "kitchen/modules/module_spec.h"
#include "kitchen/ops/activation.h"

#include <memory>
#include <optional>
#include <utility>

namespace kitchen {

/// Specs of an MLP's parts.
struct MLPSubmodules {
  std::optional<ModuleSpec> linear_fc1;
  std::optional<ModuleType> activation_func;  ///< nullopt: the config's activation
  std::optional<ModuleSpec> linear_fc2;
};

/// fc1, activation, fc2. fc1 returns its bias, which is added together with the activation.
///
/// Gated: fc1 is twice as wide, y = act(first half)·(second half + offset).
class MLP : public MegatronModule {
 public:
  /// @throws ValueError for an expert without ffn_hidden_size.
  MLP(std::shared_ptr<TransformerConfig> config, const MLPSubmodules& submodules,
      bool is_expert = false, std::optional<std::int64_t> input_size = {},
      std::optional<std::int64_t> ffn_hidden_size = {},
      std::shared_ptr<ProcessGroup> tp_group = nullptr);

  /// @param hidden [s, b, h].
  /// @param per_token_scale [s, b], multiplies the activation; fc2's bias is then added here, times the scale.
  /// @returns the output [s, b, h] and the bias that the caller adds, nullopt with a per-token scale.
  /// @throws AssertionError if bias_activation_fusion meets a plain GELU without a bias.
  std::pair<Tensor, std::optional<Tensor>> forward(
      const Tensor& hidden, const std::optional<Tensor>& per_token_scale = std::nullopt);

  std::shared_ptr<Module> linear_fc1;
  std::shared_ptr<Module> linear_fc2;

  /// fc1 of a gated MLP becomes a factory of two shards, gate and up.
  ShardedStateDict sharded_state_dict(const std::string& prefix = "",
                                      const ShardedOffsets& sharded_offsets = {},
                                      const Metadata* metadata = nullptr) override;

  [[nodiscard]] std::string class_name() const override { return "MLP"; }
  static ModuleInfo module_info();

 private:
  std::shared_ptr<ProcessGroup> tp_group_;  ///< of the split of fc1 and fc2
  modules::ForwardLinear* fc1_ = nullptr;
  modules::ForwardLinear* fc2_ = nullptr;
  ops::ActivationOptions activation_;
};

}  // namespace kitchen
