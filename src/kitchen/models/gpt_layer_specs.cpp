#include "kitchen/models/gpt_layer_specs.h"

#include "kitchen/base/error.h"
#include "kitchen/modules/layer_norm_linear.h"

namespace kitchen {

namespace {

void refuse_unsupported(const TransformerConfig& config) {
  if (config.num_moe_experts) {
    throw NotImplementedError(
        "gpt_layer_spec: num_moe_experts is set; mixture-of-experts layers are not available in this "
        "version");
  }
  if (config.multi_latent_attention) {
    throw NotImplementedError("gpt_layer_spec: multi_latent_attention is not supported");
  }
}

/// @throws ValueError for a name that is no norm, whatever topology would read it later.
bool is_rms_norm(const TransformerConfig& config) {
  return modules::norm_kind_from_string(config.normalization) == ops::NormKind::rms_norm;
}

}  // namespace

ModuleSpec gpt_layer_spec(const BackendSpecProvider& provider, const TransformerConfig& config) {
  refuse_unsupported(config);
  const bool rms = is_rms_norm(config);
  const bool fused = provider.fuse_layernorm_and_linear();
  const ModuleType column = provider.column_parallel_linear();
  const ModuleType first =
      fused ? provider.column_parallel_layer_norm_linear().value_or(column) : column;

  SelfAttentionSubmodules attention;
  attention.linear_qkv = first;
  attention.core_attention = provider.core_attention();
  attention.linear_proj = provider.row_parallel_linear();
  if (config.qk_layernorm) {
    attention.q_layernorm = provider.layer_norm(rms, /*for_qk=*/true);
    attention.k_layernorm = provider.layer_norm(rms, /*for_qk=*/true);
  }
  MLPSubmodules mlp;
  mlp.linear_fc1 = first;
  mlp.activation_func = provider.activation_func();
  mlp.linear_fc2 = provider.row_parallel_linear();

  TransformerLayerSubmodules layer;
  if (!fused) {
    layer.input_layernorm = provider.layer_norm(rms);
    layer.pre_mlp_layernorm = provider.layer_norm(rms);
  }
  layer.self_attention = ModuleSpec(module_type<SelfAttention>(),
                                    {{"attn_mask_type", AttnMaskType::causal}}, attention);
  layer.mlp = ModuleSpec(module_type<MLP>(), {}, mlp);
  return ModuleSpec(module_type<TransformerLayer>(), {}, layer);
}

TransformerBlockSubmodules gpt_block_submodules(const BackendSpecProvider& provider,
                                                const TransformerConfig& config) {
  TransformerBlockSubmodules block;
  const ModuleSpec layer = gpt_layer_spec(provider, config);
  block.layer_specs.assign(static_cast<std::size_t>(config.num_layers), layer);
  block.layer_norm = provider.layer_norm(is_rms_norm(config));
  return block;
}

}  // namespace kitchen
