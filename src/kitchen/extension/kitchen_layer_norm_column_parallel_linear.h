#pragma once

#include "kitchen/config/transformer_config.h"
#include "kitchen/extension/kitchen_quantization_params.h"
#include "kitchen/modules/finish_init.h"
#include "kitchen/modules/forward_interfaces.h"
#include "kitchen/modules/layer_norm_linear.h"
#include "kitchen/modules/megatron_module.h"
#include "kitchen/modules/module_spec.h"
#include "kitchen/modules/required.h"

#include <optional>
#include <string>
#include <utility>

namespace kitchen {

/// Keyword arguments of KitchenLayerNormColumnParallelLinear.
struct LayerNormColumnParallelLinearArgs {
  Required<std::shared_ptr<TransformerConfig>> config;
  Required<InitMethod> init_method;
  Required<bool> gather_output;
  Required<bool> bias;
  Required<bool> skip_bias_add;
  Required<bool> is_expert;
  bool skip_weight_param_allocation = false;
  std::optional<std::int64_t> layer_number;
  std::optional<std::string> tp_comm_buffer_name;
  std::shared_ptr<ProcessGroup> tp_group;  ///< null: the default tensor-parallel group
  std::int64_t stride = 1;                 ///< Ext: 2 for a gated fc1
};

/// Normalisation and a column-parallel linear layer as one module; the normalised tensor is quantized as x.
/// [s, b, in] -> [s, b, out/t].
class KitchenLayerNormColumnParallelLinear : public modules::LayerNormLinear,
                                             public modules::ForwardLinear,
                                             public FinishInit,
                                             public HasFirstMicrobatch {
 public:
  /// @throws TypeError for a missing keyword; ValueError, in this order, for gather_output, is_expert (MoE),
  ///         skip_weight_param_allocation, tp_comm_overlap, symmetric_ar_type, use_cpu_initialization.
  KitchenLayerNormColumnParallelLinear(std::int64_t input_size, std::int64_t output_size,
                                       LayerNormColumnParallelLinearArgs args);

  /// Resolves the recipe, allocates and initialises. On an error nothing has changed.
  /// @throws AssertionError if called twice, or without a linear recipe.
  void finish_init(const std::optional<QuantizationConfig>& quantization_config) override;

  /// @param x [..., in_features]. @returns as KitchenLinear::forward.
  /// @throws AssertionError before finish_init.
  std::pair<Tensor, std::optional<Tensor>> forward(const Tensor& x) override;

  /// Weight and bias split along axis 0, norm parameters replicated.
  ShardedStateDict sharded_state_dict(const std::string& prefix = "",
                                      const ShardedOffsets& sharded_offsets = {},
                                      const Metadata* metadata = nullptr) override;

  /// Local sizes, bias and tensor-parallel size.
  [[nodiscard]] std::string repr() const override;

  std::shared_ptr<TransformerConfig> config;
  bool kitchen_return_bias = false;
  bool disable_parameter_transpose_cache = false;
  bool init_finished = false;
  int tp_rank = 0;
  std::optional<KitchenQuantizationParams> kitchen_quant_params;  ///< set by finish_init

  /// The documented name.
  [[nodiscard]] std::string class_name() const override {
    return "KitchenLayerNormColumnParallelLinear";
  }
  /// Name, arguments and builder, for specs.
  static ModuleInfo module_info();

 private:
  void require_init() const;

  modules::LayerNormLinearOptions stash_;
};

}  // namespace kitchen
