#include "kitchen/extension/kitchen_attention_support.h"

#include "kitchen/base/error.h"

namespace kitchen::extension {

modules::AttentionGeometry kitchen_attention_geometry(
    const std::string& class_name, const TransformerConfig& config, std::int64_t layer_number,
    std::optional<double> attention_dropout, std::optional<double> softmax_scale,
    const std::shared_ptr<const ProcessGroupCollection>& pg_collection) {
  modules::refuse_unsupported_attention(class_name, config);
  if (!pg_collection) {
    throw ValueError(class_name + " was built without ProcessGroupCollection; pass pg_collection");
  }
  if (!pg_collection->tp) {
    throw AssertionError(class_name + ": pg_collection must have tp process group");
  }
  return modules::attention_geometry(class_name, config, layer_number, *pg_collection->tp,
                                     attention_dropout, softmax_scale);
}

void check_kitchen_attention_call(const std::string& class_name, bool init_finished,
                                  const PackedSeqParams* packed_seq_params,
                                  const std::optional<Tensor>& attention_bias) {
  if (!init_finished) {
    throw AssertionError(class_name + ": Must call finish_init before forward");
  }
  if (packed_seq_params != nullptr) {
    throw AssertionError(class_name + ": Packed sequence is not supported");
  }
  if (attention_bias) throw AssertionError(class_name + ": Attention bias is not supported");
}

}  // namespace kitchen::extension
