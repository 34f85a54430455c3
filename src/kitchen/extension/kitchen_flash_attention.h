#pragma once

#include "kitchen/extension/kitchen_quantization_params.h"
#include "kitchen/modules/dot_product_attention.h"
#include "kitchen/modules/finish_init.h"
#include "kitchen/modules/kitchen_flash_attention_module.h"
#include "kitchen/parallel/process_group_collection.h"

namespace kitchen {

/// Causal flash attention with the numerics of a recipe. Only the output and the log-sum-exp are kept.
///
/// query [sq, b, np, hn], key and value [sk, b, ng, hn], local head counts, ng divides np, sq = sk.
class KitchenFlashAttention : public MegatronModule,
                              public modules::ForwardAttention,
                              public FinishInit,
                              public HasFirstMicrobatch {
 public:
  /// @throws as KitchenDotProductAttention, in the same order.
  KitchenFlashAttention(std::shared_ptr<TransformerConfig> config, std::int64_t layer_number,
                        AttnMaskType attn_mask_type, std::string attention_type,
                        std::optional<double> attention_dropout = {},
                        std::optional<double> softmax_scale = {},
                        std::optional<std::string> cp_comm_type = {},
                        std::shared_ptr<const ProcessGroupCollection> pg_collection = nullptr);

  /// Builds the child module with the flash part of the configuration, or with bf16 in base 2, which is logged.
  /// @throws NotImplementedError for dropout > 0 or attention_type "cross", ValueError for another type,
  ///         AssertionError without a configuration.
  void finish_init(const std::optional<QuantizationConfig>& quantization_config) override;

  /// @param attention_mask ignored.
  /// @param attn_mask_type must be causal; nullopt takes the constructor's.
  /// @returns [sq, b, np·hn] in the inputs' dtype.
  /// @throws AssertionError before finish_init, for another mask type, for sq != sk, packed sequences or a bias.
  Tensor forward(const Tensor& query, const Tensor& key, const Tensor& value,
                 const std::optional<Tensor>& attention_mask,
                 std::optional<AttnMaskType> attn_mask_type = {},
                 const std::optional<Tensor>& attention_bias = {},
                 const PackedSeqParams* packed_seq_params = nullptr) override;

  modules::AttentionGeometry geometry;
  AttnMaskType attn_mask_type;
  std::string attention_type;
  bool init_finished = false;
  std::optional<KitchenQuantizationParams> kitchen_quant_params;  ///< set by finish_init
  std::shared_ptr<modules::KitchenFlashAttentionModule> flash_attention_module;

  /// The documented name.
  [[nodiscard]] std::string class_name() const override { return "KitchenFlashAttention"; }
  /// Name, arguments and builder, for specs.
  static ModuleInfo module_info();
};

}  // namespace kitchen
