#include "kitchen/modules/dot_product_attention.h"

#include "kitchen/base/error.h"

namespace kitchen {

std::vector<std::string> modules::attention_argument_names() {
  return {"config",        "layer_number", "attn_mask_type", "attention_type", "attention_dropout",
          "softmax_scale", "cp_comm_type", "pg_collection"};
}

DotProductAttention::DotProductAttention(
    std::shared_ptr<TransformerConfig> transformer_config, std::int64_t layer_number,
    AttnMaskType attn_mask_type, std::string /*attention_type*/, std::optional<double> dropout,
    std::optional<double> softmax_scale, std::optional<std::string> /*cp_comm_type*/,
    std::shared_ptr<const ProcessGroupCollection> pg_collection)
    : MegatronModule(std::move(transformer_config)) {
  modules::refuse_unsupported_attention(class_name(), *config);
  if (!pg_collection) pg_collection = ProcessGroupCollection::use_mpu_process_groups();
  geometry = modules::attention_geometry(class_name(), *config, layer_number, *pg_collection->tp,
                                         dropout, softmax_scale);
  scale_mask_softmax = std::make_shared<FusedScaleMaskSoftmax>(
      config->fp16, config->bf16, attn_mask_type, config->masked_softmax_fusion,
      config->attention_softmax_in_fp32, geometry.coeff);
  attention_dropout = std::make_shared<Dropout>(geometry.attention_dropout);
  register_child("scale_mask_softmax", scale_mask_softmax);
  register_child("attention_dropout", attention_dropout);
}

Tensor DotProductAttention::forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const std::optional<Tensor>& attention_mask,
                                    std::optional<AttnMaskType> /*attn_mask_type*/,
                                    const std::optional<Tensor>& attention_bias,
                                    const PackedSeqParams* packed_seq_params) {
  if (packed_seq_params != nullptr) {
    throw AssertionError(class_name() + ": Packed sequence is not supported");
  }
  if (attention_bias) throw AssertionError(class_name() + ": Attention bias is not supported");
  modules::check_attention_inputs(class_name(), geometry, query, key, value);
  const modules::UnfusedAttention core{&geometry, scale_mask_softmax.get(), attention_dropout.get(),
                                       config->sequence_parallel, nullptr, class_name()};
  return modules::unfused_attention(core, query, key, value, attention_mask);
}

ModuleInfo DotProductAttention::module_info() {
  return {"DotProductAttention", modules::attention_argument_names(),
          &modules::build_attention<DotProductAttention>};
}

}  // namespace kitchen
