#pragma once

#include "kitchen/modules/attention_geometry.h"
#include "kitchen/modules/packed_seq_params.h"
#include "kitchen/parallel/process_group_collection.h"

#include <optional>
#include <string>

namespace kitchen::extension {

/// The constructor checks that both attention classes share, in the documented order, and the sizes.
/// @throws as the constructors say.
modules::AttentionGeometry kitchen_attention_geometry(
    const std::string& class_name, const TransformerConfig& config, std::int64_t layer_number,
    std::optional<double> attention_dropout, std::optional<double> softmax_scale,
    const std::shared_ptr<const ProcessGroupCollection>& pg_collection);

/// The checks that both forwards share.
void check_kitchen_attention_call(const std::string& class_name, bool init_finished,
                                  const PackedSeqParams* packed_seq_params,
                                  const std::optional<Tensor>& attention_bias);

}  // namespace kitchen::extension
