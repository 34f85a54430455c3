#pragma once

#include "kitchen/config/model_parallel_config.h"
#include "kitchen/config/transformer_config.h"
#include "kitchen/extension/get_extra_kitchen_kwargs.h"
#include "kitchen/extension/kitchen_quantization_params.h"
#include "kitchen/modules/finish_init.h"
#include "kitchen/modules/forward_interfaces.h"
#include "kitchen/modules/linear.h"
#include "kitchen/modules/megatron_module.h"
#include "kitchen/modules/module_spec.h"
#include "kitchen/modules/required.h"

#include <optional>
#include <string>
#include <utility>

namespace kitchen {

/// Keyword arguments of KitchenLinear.
struct LinearArgs {
  Required<std::optional<std::string>> parallel_mode;  ///< "column", "row", "duplicated" or nullopt
  Required<std::shared_ptr<ModelParallelConfig>> config;
  Required<InitMethod> init_method;
  Required<bool> bias;
  Required<bool> skip_bias_add;
  Required<bool> skip_weight_param_allocation;
  std::optional<std::string> tp_comm_buffer_name;
  std::optional<std::int64_t> layer_number;
  bool is_expert = false;
  std::shared_ptr<ProcessGroup> tp_group;
};

/// Linear layer whose three products are quantized as a recipe says.
///
/// Built in two phases: the constructor checks and remembers its arguments and allocates nothing; finish_init
/// learns the recipe and allocates. y = x·wᵀ (+ bias); weight [out_features, in_features], local sizes.
class KitchenLinear : public modules::Linear,
                      public modules::ForwardLinear,
                      public FinishInit,
                      public HasFirstMicrobatch {
 public:
  /// @param input_size,output_size global feature sizes.
  /// @throws TypeError for a missing keyword; ValueError for skip_weight_param_allocation or an unknown mode;
  ///         NotImplementedError for config.delay_wgrad_compute.
  KitchenLinear(std::int64_t input_size, std::int64_t output_size, LinearArgs args);

  /// Resolves the recipe, allocates and initialises the parameters. On an error nothing has changed.
  /// @throws AssertionError if it was called already, without a linear recipe, for a duplicated layer with a
  ///         group or another mode without one; ValueError for use_cpu_initialization or a bias that ranks of
  ///         an expert group would add each.
  void finish_init(const std::optional<QuantizationConfig>& quantization_config) override;

  /// @param x [..., in_features]; leading dimensions (sequence, batch) are kept.
  /// @returns (x·wᵀ + bias, nullopt), or (x·wᵀ, bias) with skip_bias_add and bias.
  /// @throws AssertionError before finish_init.
  std::pair<Tensor, std::optional<Tensor>> forward(const Tensor& x) override;

  /// All tensors replicated. @throws AssertionError before finish_init, and unless the layer is duplicated.
  ShardedStateDict sharded_state_dict(const std::string& prefix = "",
                                      const ShardedOffsets& sharded_offsets = {},
                                      const Metadata* metadata = nullptr) override;

  std::shared_ptr<ModelParallelConfig> config;
  bool kitchen_return_bias = false;  ///< skip_bias_add and bias
  bool disable_parameter_transpose_cache = false;
  bool init_finished = false;
  bool expert_parallel = false;  ///< set by finish_init
  std::optional<KitchenQuantizationParams> kitchen_quant_params;  ///< set by finish_init

  /// The documented name.
  [[nodiscard]] std::string class_name() const override { return "KitchenLinear"; }
  /// Name, arguments and builder, for specs.
  static ModuleInfo module_info();

 protected:
  /// @throws AssertionError naming the class and finish_init.
  void require_init() const;
  /// Shards along the given axes of weight and bias (api section 1.16).
  ShardedStateDict sharded_by_axes(const std::map<std::string, int>& tp_axis_map,
                                   const std::string& prefix, const ShardedOffsets& offsets,
                                   const Metadata* metadata) const;
  /// "Class(in_features=4, out_features=8, bias=True, TP=1)", or "Class(uninitialized)".
  [[nodiscard]] std::string parallel_repr() const;
  std::int64_t partition_stride = 1;

 private:
  struct Stash;
  [[nodiscard]] modules::LinearOptions resolve(const KitchenQuantizationParams& quant_params,
                                               const ExtraKitchenKwargs& kwargs) const;
  [[nodiscard]] std::string logical_path(const std::string& module_path) const;
  void set_parameter_attributes();

  std::shared_ptr<const Stash> stash_;
};

}  // namespace kitchen
