#pragma once

#include "kitchen/extension/kitchen_linear.h"

namespace kitchen {

/// Keyword arguments of KitchenRowParallelLinear.
struct RowParallelLinearArgs {
  Required<std::shared_ptr<ModelParallelConfig>> config;
  Required<InitMethod> init_method;
  Required<bool> bias;
  Required<bool> input_is_parallel;
  Required<bool> skip_bias_add;
  Required<bool> is_expert;
  std::optional<std::string> tp_comm_buffer_name;
  std::optional<std::int64_t> layer_number;
  std::shared_ptr<ProcessGroup> tp_group;  ///< null: the default (expert) tensor-parallel group
};

/// Linear layer that is split by input features: weight [output_size, input_size/t], bias [output_size] on every
/// rank, added once after the reduction. [s, b, in/t] -> [s, b, out].
class KitchenRowParallelLinear : public KitchenLinear {
 public:
  /// @throws TypeError for a missing keyword; ValueError for input_is_parallel = false or
  ///         use_cpu_initialization. finish_init throws AssertionError if t does not divide input_size.
  KitchenRowParallelLinear(std::int64_t input_size, std::int64_t output_size,
                           RowParallelLinearArgs args);

  /// Weight split along axis 1, bias replicated.
  ShardedStateDict sharded_state_dict(const std::string& prefix = "",
                                      const ShardedOffsets& sharded_offsets = {},
                                      const Metadata* metadata = nullptr) override;

  /// Local sizes, bias and tensor-parallel size.
  [[nodiscard]] std::string repr() const override { return parallel_repr(); }
  /// The documented name.
  [[nodiscard]] std::string class_name() const override { return "KitchenRowParallelLinear"; }
  /// Name, arguments and builder, for specs.
  static ModuleInfo module_info();
};

}  // namespace kitchen
