#include "kitchen/models/transformer_block.h"

#include "kitchen/parallel/rng_tracker.h"

namespace kitchen {

class TransformerBlock::LayerList : public Module {
 public:
  void append(std::shared_ptr<Module> layer) {
    register_child(std::to_string(named_children().size()), std::move(layer));
  }
  [[nodiscard]] std::string class_name() const override { return "ModuleList"; }
};

TransformerBlock::TransformerBlock(std::shared_ptr<TransformerConfig> transformer_config,
                                   const TransformerBlockSubmodules& submodules,
                                   std::shared_ptr<const ProcessGroupCollection> pg_collection,
                                   std::optional<RotaryOptions> rotary)
    : MegatronModule(std::move(transformer_config)) {
  auto list = std::make_shared<LayerList>();
  for (std::size_t i = 0; i < submodules.layer_specs.size(); ++i) {
    layers.push_back(build_module_as<TransformerLayer>(
        submodules.layer_specs[i],
        BuildArgs({}, {{"config", config},
                       {"layer_number", static_cast<std::int64_t>(i) + 1},
                       {"pg_collection", pg_collection},
                       {"rotary", rotary}})));
    list->append(layers.back());
  }
  register_child("layers", list);
  if (!submodules.layer_norm) return;
  final_layernorm =
      build_module(*submodules.layer_norm, BuildArgs({}, {{"config", config},
                                                          {"hidden_size", config->hidden_size},
                                                          {"eps", config->layernorm_epsilon}}));
  register_child("final_layernorm", final_layernorm);
}

Tensor TransformerBlock::forward(Tensor hidden, const std::optional<Tensor>& attention_mask) {
  // Under sequence parallelism the ranks hold different tokens and must drop different ones.
  std::optional<RngTracker::Fork> fork;
  if (config->sequence_parallel) fork.emplace(get_cuda_rng_tracker(), "model-parallel-rng");
  for (const auto& layer : layers) hidden = layer->forward(hidden, attention_mask);
  if (!final_layernorm) return hidden;
  return dynamic_cast<modules::ForwardTensor&>(*final_layernorm).forward(hidden);
}

ShardedStateDict TransformerBlock::sharded_state_dict(const std::string& prefix,
                                                      const ShardedOffsets& sharded_offsets,
                                                      const Metadata* metadata) {
  ShardedStateDict result;
  const std::string layer_prefix = prefix + "layers.";
  const auto num_layers = static_cast<std::int64_t>(layers.size());
  for (std::int64_t i = 0; i < num_layers; ++i) {
    ShardedOffsets offsets = sharded_offsets;
    offsets.emplace_back(static_cast<int>(sharded_offsets.size()), i, num_layers);
    const std::string own_prefix = layer_prefix + std::to_string(i) + ".";
    ShardedStateDict layer =
        layers[static_cast<std::size_t>(i)]->sharded_state_dict(own_prefix, offsets, metadata);
    replace_prefix_for_sharding(layer, own_prefix, layer_prefix);
    result.update(layer);
  }
  if (final_layernorm) {
    result.update(
        final_layernorm->sharded_state_dict(prefix + "final_layernorm.", sharded_offsets, metadata));
  }
  return result;
}

}  // namespace kitchen
