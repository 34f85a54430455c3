#pragma once

#include "kitchen/extension/kitchen_grouped_linear.h"

namespace kitchen {

/// Keyword arguments of KitchenRowParallelGroupedLinear.
struct RowParallelGroupedLinearArgs {
  Required<std::shared_ptr<ModelParallelConfig>> config;
  Required<InitMethod> init_method;
  Required<bool> bias;
  Required<bool> skip_bias_add;
  Required<bool> is_expert;
  std::optional<std::string> tp_comm_buffer_name;  ///< recorded only
  std::optional<std::int64_t> layer_number;
  std::shared_ptr<ProcessGroup>
      tp_group;  ///< null: `pg_collection`, else the default (expert) group
  std::shared_ptr<const ProcessGroupCollection> pg_collection;  ///< Ext: its expt_tp
};

/// Linear layers of several experts that are split by input features: weights
/// [output_size, input_size/t].
class KitchenRowParallelGroupedLinear : public KitchenGroupedLinear {
 public:
  /// @throws TypeError for a missing keyword; else as KitchenGroupedLinear.
  KitchenRowParallelGroupedLinear(std::int64_t num_gemms, std::int64_t input_size,
                                  std::int64_t output_size,
                                  const RowParallelGroupedLinearArgs& args);

  /// Weights split along axis 1, biases replicated; the expert axis is appended to
  /// `sharded_offsets` and needs not be among them.
  ShardedStateDict sharded_state_dict(const std::string& prefix = "",
                                      const ShardedOffsets& sharded_offsets = {},
                                      const Metadata* metadata = nullptr) override;

  /// The documented name.
  [[nodiscard]] std::string class_name() const override {
    return "KitchenRowParallelGroupedLinear";
  }
  /// Name, arguments and builder, for specs.
  static ModuleInfo module_info();
};

}  // namespace kitchen
