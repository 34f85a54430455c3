#pragma once

#include "kitchen/config/model_parallel_config.h"
#include "kitchen/extension/get_extra_kitchen_kwargs.h"
#include "kitchen/extension/kitchen_quantization_params.h"
#include "kitchen/modules/expert_state.h"
#include "kitchen/modules/finish_init.h"
#include "kitchen/modules/forward_interfaces.h"
#include "kitchen/modules/grouped_linear.h"
#include "kitchen/modules/megatron_module.h"
#include "kitchen/modules/module_spec.h"
#include "kitchen/modules/required.h"
#include "kitchen/parallel/process_group_collection.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kitchen {

/// Keyword arguments of KitchenGroupedLinear.
struct GroupedLinearArgs {
  Required<std::optional<std::string>> parallel_mode;  ///< "column", "row" or nullopt
  Required<std::shared_ptr<ModelParallelConfig>> config;
  Required<InitMethod> init_method;
  Required<bool> bias;
  Required<bool> skip_bias_add;
  bool is_expert = false;
  std::optional<std::string> tp_comm_buffer_name;  ///< recorded only
  std::optional<std::int64_t> layer_number;
  std::shared_ptr<ProcessGroup>
      tp_group;  ///< null: `pg_collection`, else the default (expert) group
  std::shared_ptr<const ProcessGroupCollection> pg_collection;  ///< Ext: its expt_tp
};

/// The extra state of each local expert; an entry may be empty.
using ExtraState = modules::ExpertStates;

/// Linear layers of several experts in one call, each quantized on its own as one recipe says.
///
/// Built in two phases as KitchenLinear. Parameters `weight0`, ... [out_features, in_features] and
/// `bias0`, ... A result equals, to the bit, what a KitchenLinear for each expert gives with its
/// rows.
class KitchenGroupedLinear : public modules::GroupedLinear,
                             public modules::ForwardGroupedLinear,
                             public FinishInit,
                             public HasFirstMicrobatch {
 public:
  /// @param num_gemms experts on this rank; input_size,output_size global feature sizes of each.
  /// @throws TypeError for a missing keyword; ValueError for num_gemms <= 0 or an unknown mode;
  ///         NotImplementedError for config.delay_wgrad_compute.
  KitchenGroupedLinear(std::int64_t num_gemms, std::int64_t input_size, std::int64_t output_size,
                       GroupedLinearArgs args);

  /// Resolves recipe and group, allocates and initialises the parameters. On an error nothing has
  /// changed.
  /// @throws AssertionError if it was called already, without a linear recipe, or for sizes that
  /// the group does
  ///         not divide; ValueError as KitchenLinear::finish_init; NotImplementedError for sequence
  ///         parallelism of a layer that is no expert, since rows sorted by expert are no sequence.
  void finish_init(const std::optional<QuantizationConfig>& quantization_config) override;

  /// @param x [rows, in_features] sorted by expert; m_splits: rows of each local expert, 0 or more.
  /// @returns the output [rows, out_features] and, with skip_bias_add and bias, the biases to add.
  /// @throws AssertionError before finish_init; ValueError if the sizes do not fit.
  std::pair<Tensor, std::optional<std::vector<Tensor>>> forward(
      const Tensor& x, const std::vector<std::int64_t>& m_splits) override;

  /// `state` as a 1-D uint8 tensor in a tagged binary form.
  Tensor _encode_extra_state(const ExtraState& state) const;
  /// Inverts _encode_extra_state.
  /// @throws RuntimeError "Unsupported checkpoint format" unless `state` is such a tensor.
  ExtraState _decode_extra_state(const Tensor& state) const;
  /// The state of each local expert as a tensor of its own: num_gemms of them, empty ones if
  /// `state` is empty.
  /// @throws AssertionError if `state` holds anything else than the states of these experts.
  std::vector<Tensor> _split_extra_state(const Tensor& state) const;
  /// Shards of all local experts. Dictionary keys tell the local expert ("weight1"), the shards'
  /// own keys do not: experts are told apart by an axis that is appended to `sharded_offsets` here,
  /// so that checkpoints of grouped and sequential experts are interchangeable.
  /// @param tp_axis_map axis of each split parameter, by "{i}.weight" and "{i}.bias".
  /// @throws AssertionError before finish_init; NotImplementedError for singleton_local_shards.
  ShardedStateDict _sharded_state_dict_grouped(const std::map<std::string, int>& tp_axis_map,
                                               const std::string& prefix = "",
                                               const ShardedOffsets& sharded_offsets = {},
                                               const Metadata* metadata = nullptr) const;

  std::shared_ptr<ModelParallelConfig> config;
  bool kitchen_return_bias = false;  ///< skip_bias_add and bias
  bool disable_parameter_transpose_cache = false;
  bool init_finished = false;
  bool explicit_expert_comm = false;  ///< set by finish_init: the token dispatcher communicates
  bool expert_parallel = false;       ///< set by finish_init
  std::optional<KitchenQuantizationParams> kitchen_quant_params;  ///< set by finish_init

  /// The documented name.
  [[nodiscard]] std::string class_name() const override { return "KitchenGroupedLinear"; }
  /// Name, arguments and builder, for specs.
  static ModuleInfo module_info();

 protected:
  /// `axes` of "weight" and "bias" for each local expert, as _sharded_state_dict_grouped takes
  /// them.
  [[nodiscard]] std::map<std::string, int> axes_of_experts(
      const std::map<std::string, int>& axes) const;

 private:
  struct Stash;
  [[nodiscard]] modules::LinearOptions resolve(const KitchenQuantizationParams& quant_params,
                                               const ExtraKitchenKwargs& kwargs) const;
  void require_init() const;
  [[nodiscard]] ShardedStateDict shards_of_expert(std::int64_t i, const Tensor& state,
                                                  const std::map<std::string, int>& tp_axis_map,
                                                  const ShardedOffsets& offsets,
                                                  const Metadata* metadata) const;

  std::shared_ptr<const Stash> stash_;
  std::shared_ptr<const ProcessGroupCollection> groups_;
};

}  // namespace kitchen
