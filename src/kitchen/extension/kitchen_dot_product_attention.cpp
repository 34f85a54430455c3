#include "kitchen/extension/kitchen_dot_product_attention.h"

#include "kitchen/base/logger.h"
#include "kitchen/extension/get_extra_kitchen_kwargs.h"
#include "kitchen/extension/kitchen_attention_support.h"
#include "kitchen/extension/kitchen_layer_support.h"

namespace kitchen {

KitchenDotProductAttention::KitchenDotProductAttention(
    std::shared_ptr<TransformerConfig> transformer_config, std::int64_t layer_number,
    AttnMaskType mask_type, std::string type, std::optional<double> dropout,
    std::optional<double> softmax_scale, std::optional<std::string> /*cp_comm_type*/,
    std::shared_ptr<const ProcessGroupCollection> pg_collection)
    : MegatronModule(
          extension::require_config("KitchenDotProductAttention", std::move(transformer_config))),
      geometry(extension::kitchen_attention_geometry("KitchenDotProductAttention", *config,
                                                     layer_number, dropout, softmax_scale,
                                                     pg_collection)),
      attn_mask_type(mask_type),
      attention_type(std::move(type)) {
  scale_mask_softmax = std::make_shared<FusedScaleMaskSoftmax>(
      config->fp16, config->bf16, attn_mask_type, config->masked_softmax_fusion,
      config->attention_softmax_in_fp32, geometry.coeff);
  attention_dropout = std::make_shared<Dropout>(geometry.attention_dropout);
  register_child("scale_mask_softmax", scale_mask_softmax);
  register_child("attention_dropout", attention_dropout);
}

void KitchenDotProductAttention::finish_init(
    const std::optional<QuantizationConfig>& quantization_config) {
  (void)_get_extra_kitchen_kwargs(*config);
  const KitchenQuantizationParams params =
      extension::parse_quantization(class_name(), quantization_config);
  if (!params.qattention_params) {
    logger().info(class_name() + " at '" + params.match_input.module_path + "': configuration '" +
                  params.params_config_key + "' has no attention part; its products run unquantized");
  }
  qattention_params = params.qattention_params;
  kitchen_quant_params = params;
  init_finished = true;
}

Tensor KitchenDotProductAttention::forward(const Tensor& query, const Tensor& key,
                                           const Tensor& value,
                                           const std::optional<Tensor>& attention_mask,
                                           std::optional<AttnMaskType> forward_mask_type,
                                           const std::optional<Tensor>& attention_bias,
                                           const PackedSeqParams* packed_seq_params) {
  extension::check_kitchen_attention_call(class_name(), init_finished, packed_seq_params,
                                          attention_bias);
  modules::check_attention_inputs(class_name(), geometry, query, key, value);
  if (forward_mask_type && *forward_mask_type != attn_mask_type) {
    logger().debug(class_name() + ": the forward mask type '" + to_string(*forward_mask_type) +
                   "' is ignored, the layer's '" + to_string(attn_mask_type) + "' counts");
  }
  const modules::UnfusedAttention core{&geometry,
                                       scale_mask_softmax.get(),
                                       attention_dropout.get(),
                                       config->sequence_parallel,
                                       qattention_params,
                                       kitchen_quant_params->match_input.module_path};
  return modules::unfused_attention(core, query, key, value, attention_mask);
}

ModuleInfo KitchenDotProductAttention::module_info() {
  return {"KitchenDotProductAttention", modules::attention_argument_names(),
          &modules::build_attention<KitchenDotProductAttention>};
}

}  // namespace kitchen
