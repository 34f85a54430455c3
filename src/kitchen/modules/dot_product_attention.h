#pragma once

#include "kitchen/modules/forward_interfaces.h"
#include "kitchen/modules/megatron_module.h"
#include "kitchen/modules/module_spec.h"
#include "kitchen/modules/unfused_attention.h"
#include "kitchen/parallel/process_group_collection.h"

namespace kitchen {

/// Megatron's local, unquantized, unfused attention core.
class DotProductAttention : public MegatronModule, public modules::ForwardAttention {
 public:
  /// @param pg_collection null: the default groups.
  /// @throws as modules::attention_geometry.
  DotProductAttention(std::shared_ptr<TransformerConfig> config, std::int64_t layer_number,
                      AttnMaskType attn_mask_type, std::string attention_type,
                      std::optional<double> attention_dropout = {},
                      std::optional<double> softmax_scale = {},
                      std::optional<std::string> cp_comm_type = {},
                      std::shared_ptr<const ProcessGroupCollection> pg_collection = nullptr);

  /// @throws AssertionError for packed sequences or an attention bias.
  Tensor forward(const Tensor& query, const Tensor& key, const Tensor& value,
                 const std::optional<Tensor>& attention_mask,
                 std::optional<AttnMaskType> attn_mask_type = {},
                 const std::optional<Tensor>& attention_bias = {},
                 const PackedSeqParams* packed_seq_params = nullptr) override;

  [[nodiscard]] std::string class_name() const override { return "DotProductAttention"; }
  static ModuleInfo module_info();

  modules::AttentionGeometry geometry;
  std::shared_ptr<FusedScaleMaskSoftmax> scale_mask_softmax;
  std::shared_ptr<Dropout> attention_dropout;
};

namespace modules {

/// The positional names that every attention core takes.
std::vector<std::string> attention_argument_names();

/// Builds an attention core of class T from those arguments.
template <class T>
std::shared_ptr<Module> build_attention(const BuildArgs& args) {
  return std::make_shared<T>(
      args.get<std::shared_ptr<TransformerConfig>>("config"), args.get<std::int64_t>("layer_number"),
      args.get<AttnMaskType>("attn_mask_type"), args.get<std::string>("attention_type"),
      args.get_or<std::optional<double>>("attention_dropout", {}),
      args.get_or<std::optional<double>>("softmax_scale", {}),
      args.get_or<std::optional<std::string>>("cp_comm_type", {}),
      args.get_or<std::shared_ptr<const ProcessGroupCollection>>("pg_collection", nullptr));
}

}  // namespace modules

}  // namespace kitchen
