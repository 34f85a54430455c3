#include "kitchen/extension/kitchen_flash_attention.h"

#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/extension/get_extra_kitchen_kwargs.h"
#include "kitchen/extension/kitchen_attention_support.h"
#include "kitchen/extension/kitchen_layer_support.h"

namespace kitchen {

KitchenFlashAttention::KitchenFlashAttention(
    std::shared_ptr<TransformerConfig> transformer_config, std::int64_t layer_number,
    AttnMaskType mask_type, std::string type, std::optional<double> dropout,
    std::optional<double> softmax_scale, std::optional<std::string> /*cp_comm_type*/,
    std::shared_ptr<const ProcessGroupCollection> pg_collection)
    : MegatronModule(
          extension::require_config("KitchenFlashAttention", std::move(transformer_config))),
      geometry(extension::kitchen_attention_geometry("KitchenFlashAttention", *config, layer_number,
                                                     dropout, softmax_scale, pg_collection)),
      attn_mask_type(mask_type),
      attention_type(std::move(type)) {}

void KitchenFlashAttention::finish_init(
    const std::optional<QuantizationConfig>& quantization_config) {
  (void)_get_extra_kitchen_kwargs(*config);
  const KitchenQuantizationParams params =
      extension::parse_quantization(class_name(), quantization_config);
  if (geometry.attention_dropout > 0.0) {
    throw NotImplementedError(class_name() + ": attention_dropout is " +
                              std::to_string(geometry.attention_dropout) +
                              "; flash attention has no dropout, set it to 0");
  }
  if (attention_type == "cross") {
    throw NotImplementedError(class_name() + ": attention_type 'cross' is not supported");
  }
  if (attention_type != "self") {
    throw ValueError(class_name() + ": attention_type is '" + attention_type + "', expected 'self'");
  }
  if (!params.qfa_params) {
    logger().info(class_name() + " at '" + params.match_input.module_path + "': configuration '" +
                  params.params_config_key + "' has no flash attention part; bf16 in base 2 is used");
  }
  modules::FlashAttentionModuleOptions options;
  options.num_attention_heads = geometry.num_attention_heads_per_partition;
  options.num_query_groups = geometry.num_query_groups_per_partition;
  options.kv_channels = geometry.hidden_size_per_attention_head;
  // An fp32 online softmax needs no range protection, so layer scaling cancels in the kernel.
  options.softmax_scale = geometry.softmax_scale * geometry.coeff.value_or(1.0);
  options.attention_dropout = geometry.attention_dropout;
  options.sequence_parallel = config->sequence_parallel;
  options.attn_mask_type = to_string(attn_mask_type);
  options.layer_number = geometry.layer_number;
  options.attention_type = attention_type;
  options.qfa_params = params.qfa_params;
  options.module = params.match_input.module_path;
  flash_attention_module = std::make_shared<modules::KitchenFlashAttentionModule>(options);
  register_child("flash_attention_module", flash_attention_module);
  kitchen_quant_params = params;
  init_finished = true;
}

Tensor KitchenFlashAttention::forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                      const std::optional<Tensor>& /*attention_mask*/,
                                      std::optional<AttnMaskType> forward_mask_type,
                                      const std::optional<Tensor>& attention_bias,
                                      const PackedSeqParams* packed_seq_params) {
  extension::check_kitchen_attention_call(class_name(), init_finished, packed_seq_params,
                                          attention_bias);
  modules::check_attention_inputs(class_name(), geometry, query, key, value);
  const AttnMaskType effective = forward_mask_type.value_or(attn_mask_type);
  if (effective != AttnMaskType::causal) {
    throw AssertionError(class_name() + ": Only causal mask is supported, found '" +
                         to_string(effective) + "'");
  }
  if (query.dim(0) != key.dim(0)) {
    throw AssertionError(class_name() + ": causal mask is only for self attention; found " +
                         std::to_string(query.dim(0)) + " queries and " +
                         std::to_string(key.dim(0)) + " keys");
  }
  Tensor out = flash_attention_module->forward(query, key, value);
  is_first_microbatch = false;
  return out;
}

ModuleInfo KitchenFlashAttention::module_info() {
  return {"KitchenFlashAttention", modules::attention_argument_names(),
          &modules::build_attention<KitchenFlashAttention>};
}

}  // namespace kitchen
