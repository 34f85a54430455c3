#pragma once

#include "kitchen/extension/kitchen_linear.h"

namespace kitchen {

/// Keyword arguments of KitchenColumnParallelLinear.
struct ColumnParallelLinearArgs {
  Required<std::shared_ptr<ModelParallelConfig>> config;
  Required<InitMethod> init_method;
  Required<bool> gather_output;
  Required<bool> bias;
  Required<bool> skip_bias_add;
  Required<bool> is_expert;
  bool skip_weight_param_allocation = false;
  std::optional<std::string> tp_comm_buffer_name;
  std::optional<std::int64_t> layer_number;
  std::shared_ptr<ProcessGroup> tp_group;  ///< null: the default (expert) tensor-parallel group
  std::int64_t stride = 1;                 ///< Ext: 2 for a gated fc1, [gate; up] in the local rows
};

/// Linear layer that is split by output features: weight [output_size/t, input_size].
/// [s, b, in] -> [s, b, out/t].
class KitchenColumnParallelLinear : public KitchenLinear {
 public:
  /// @throws TypeError for a missing keyword; ValueError for gather_output, skip_weight_param_allocation or
  ///         use_cpu_initialization. finish_init throws AssertionError if t does not divide output_size.
  KitchenColumnParallelLinear(std::int64_t input_size, std::int64_t output_size,
                              ColumnParallelLinearArgs args);

  /// Weight and bias split along axis 0.
  ShardedStateDict sharded_state_dict(const std::string& prefix = "",
                                      const ShardedOffsets& sharded_offsets = {},
                                      const Metadata* metadata = nullptr) override;

  /// Local sizes, bias and tensor-parallel size.
  [[nodiscard]] std::string repr() const override { return parallel_repr(); }
  /// The documented name.
  [[nodiscard]] std::string class_name() const override { return "KitchenColumnParallelLinear"; }
  /// Name, arguments and builder, for specs.
  static ModuleInfo module_info();
};

}  // namespace kitchen
