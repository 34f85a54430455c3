#pragma once

#include "kitchen/modules/forward_interfaces.h"
#include "kitchen/modules/mlp.h"
#include "kitchen/parallel/process_group_collection.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

/// @file  moe_experts.h
/// @brief The experts of a mixture: each is an MLP with weights of its own.
///
/// Tokens are sorted by expert. Both classes give the same numbers: equal weights under equal
/// seeds, and, without biases or in float32, equal bits.

namespace kitchen {

/// The experts of this rank, as a mixture-of-experts layer calls them.
class Experts : public MegatronModule {
 public:
  using MegatronModule::MegatronModule;

  /// @param tokens [rows, hidden], sorted by local expert; tokens_per_expert: rows of each, 0 or
  /// more.
  /// @param probs [rows], the router's weight of each row, which scales what the expert gives.
  /// @returns [rows, hidden] and nullopt: biases are added here.
  /// @throws ValueError if the sizes do not fit.
  virtual std::pair<Tensor, std::optional<Tensor>> forward(
      const Tensor& tokens, const std::vector<std::int64_t>& tokens_per_expert,
      const Tensor& probs) = 0;
};

/// One MLP for each local expert, one after the other: `local_experts.0`, `local_experts.1`, ...
class SequentialMLP : public Experts {
 public:
  /// @throws ValueError unless num_local_experts > 0; NotImplementedError for
  /// moe_apply_probs_on_input.
  SequentialMLP(std::int64_t num_local_experts, std::shared_ptr<TransformerConfig> config,
                const MLPSubmodules& submodules,
                std::shared_ptr<const ProcessGroupCollection> pg_collection = nullptr);

  std::pair<Tensor, std::optional<Tensor>> forward(
      const Tensor& tokens, const std::vector<std::int64_t>& tokens_per_expert,
      const Tensor& probs) override;

  /// All experts under the keys "{prefix}experts.*", told apart by an axis that is appended to the
  /// offsets.
  ShardedStateDict sharded_state_dict(const std::string& prefix = "",
                                      const ShardedOffsets& sharded_offsets = {},
                                      const Metadata* metadata = nullptr) override;

  [[nodiscard]] std::string class_name() const override { return "SequentialMLP"; }
  static ModuleInfo module_info();

 private:
  std::vector<std::shared_ptr<MLP>> experts_;
  std::shared_ptr<const ProcessGroupCollection> groups_;
};

/// Two grouped linears for all local experts: `linear_fc1`, `linear_fc2`. Megatron's name; it needs
/// no Transformer Engine.
class TEGroupedMLP : public Experts {
 public:
  /// @throws as SequentialMLP; TypeError if a part is no grouped linear layer.
  TEGroupedMLP(std::int64_t num_local_experts, std::shared_ptr<TransformerConfig> config,
               const MLPSubmodules& submodules,
               std::shared_ptr<const ProcessGroupCollection> pg_collection = nullptr);

  std::pair<Tensor, std::optional<Tensor>> forward(
      const Tensor& tokens, const std::vector<std::int64_t>& tokens_per_expert,
      const Tensor& probs) override;

  /// Interchangeable with that of SequentialMLP.
  ShardedStateDict sharded_state_dict(const std::string& prefix = "",
                                      const ShardedOffsets& sharded_offsets = {},
                                      const Metadata* metadata = nullptr) override;

  std::shared_ptr<Module> linear_fc1;
  std::shared_ptr<Module> linear_fc2;

  [[nodiscard]] std::string class_name() const override { return "TEGroupedMLP"; }
  static ModuleInfo module_info();

 private:
  std::int64_t num_local_experts_;
  std::shared_ptr<const ProcessGroupCollection> groups_;
  modules::ForwardGroupedLinear* fc1_ = nullptr;
  modules::ForwardGroupedLinear* fc2_ = nullptr;
  ops::ActivationOptions activation_;
};

/// The legacy grouped form. The type exists so that a provider can name it; building one throws
/// NotImplementedError.
class GroupedMLP : public Module {
 public:
  [[nodiscard]] std::string class_name() const override { return "GroupedMLP"; }
  static ModuleInfo module_info();
};

}  // namespace kitchen
