#pragma once

#include "kitchen/extension/kitchen_quantization_params.h"
#include "kitchen/modules/dot_product_attention.h"
#include "kitchen/modules/finish_init.h"
#include "kitchen/parallel/process_group_collection.h"

namespace kitchen {

/// Unfused attention whose two products are quantized as a recipe says: scores along the head size, context
/// along the keys. The softmax is never quantized.
///
/// query [sq, b, np, hn], key and value [sk, b, ng, hn], local head counts, ng divides np.
/// @source Reducing Activation Recomputation in Large Transformer Models, arXiv:2205.05198: this is the region
///         that selective recomputation repeats.
class KitchenDotProductAttention : public MegatronModule,
                                   public modules::ForwardAttention,
                                   public FinishInit {
 public:
  /// @param attn_mask_type governs; the forward argument of the same name is ignored.
  /// @param softmax_scale default 1/sqrt(hn); divided by layer_number under query-key layer scaling.
  /// @throws AssertionError for context parallelism, a window, missing kv_channels, a collection without `tp`,
  ///         sizes that a division does not fit, or layer scaling without fp32 softmax; ValueError without a
  ///         collection; NotImplementedError for other softmax types and latent attention.
  KitchenDotProductAttention(std::shared_ptr<TransformerConfig> config, std::int64_t layer_number,
                             AttnMaskType attn_mask_type, std::string attention_type,
                             std::optional<double> attention_dropout = {},
                             std::optional<double> softmax_scale = {},
                             std::optional<std::string> cp_comm_type = {},
                             std::shared_ptr<const ProcessGroupCollection> pg_collection = nullptr);

  /// Takes the attention part of the configuration; without one the products run unquantized, which is logged.
  /// A second call replaces the parameters. @throws AssertionError without a configuration.
  void finish_init(const std::optional<QuantizationConfig>& quantization_config) override;

  /// @param attention_mask boolean, true = masked (score -10000), broadcastable to [b, np, sq, sk]; nullopt: by
  ///        the mask type. @returns [sq, b, np·hn] in the inputs' dtype.
  /// @throws AssertionError before finish_init, for packed sequences, for an attention bias, and for a
  ///         generated causal mask with sq != sk; ValueError on shapes.
  Tensor forward(const Tensor& query, const Tensor& key, const Tensor& value,
                 const std::optional<Tensor>& attention_mask,
                 std::optional<AttnMaskType> attn_mask_type = {},
                 const std::optional<Tensor>& attention_bias = {},
                 const PackedSeqParams* packed_seq_params = nullptr) override;

  modules::AttentionGeometry geometry;
  AttnMaskType attn_mask_type;
  std::string attention_type;
  std::shared_ptr<FusedScaleMaskSoftmax> scale_mask_softmax;
  std::shared_ptr<Dropout> attention_dropout;
  bool init_finished = false;
  std::optional<KitchenQuantizationParams> kitchen_quant_params;  ///< set by finish_init
  std::shared_ptr<const QAttentionParams> qattention_params;      ///< null: unquantized

  /// The documented name.
  [[nodiscard]] std::string class_name() const override { return "KitchenDotProductAttention"; }
  /// Name, arguments and builder, for specs.
  static ModuleInfo module_info();
};

}  // namespace kitchen
