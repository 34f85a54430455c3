#include "kitchen/train/model_factory.h"

#include "kitchen/base/error.h"
#include "kitchen/base/rethrow.h"
#include "kitchen/config/kitchen_flags.h"
#include "kitchen/extension/kitchen_spec_provider.h"
#include "kitchen/extension/validate_recipe.h"
#include "kitchen/models/gpt_layer_specs.h"
#include "kitchen/modules/local_spec_provider.h"
#include "kitchen/train/parallel_settings.h"

#include <string>

namespace kitchen::train {

namespace {

std::shared_ptr<BackendSpecProvider> make_provider(const TrainSettings& settings,
                                                   const TransformerConfig& config) {
  std::shared_ptr<BackendSpecProvider> fallback;
  if (settings.transformer_impl == "local") {
    fallback = std::make_shared<LocalSpecProvider>();
  } else {
    fallback = std::make_shared<FusedSpecProvider>();
  }
  if (!config.use_kitchen) return fallback;
  return std::make_shared<KitchenSpecProvider>(fallback, config.use_kitchen_attention,
                                               config.kitchen_attention_backend);
}

/// Where the user gave the recipe, for messages about it.
std::string recipe_source(const TrainSettings& settings) {
  if (settings.kitchen_config_file) return "--kitchen-config-file " + *settings.kitchen_config_file;
  if (settings.kitchen_recipe_number) {
    return "--kitchen-recipe-number " + std::to_string(*settings.kitchen_recipe_number);
  }
  return "--kitchen-recipe-name " + settings.kitchen_recipe_name.value_or("");
}

void check_recipe_of(const TrainSettings& settings, const RecipeConfig& recipe) {
  try {
    (void)validate_recipe(recipe);
  } catch (const Error& error) {
    rethrow_with_suffix(error, "; from " + recipe_source(settings));
  }
}

ActivationFunc activation_of(const TrainSettings& settings) {
  if (settings.swiglu) return ActivationFunc::silu;
  try {
    return from_string<ActivationFunc>(settings.activation);
  } catch (const Error& error) {
    rethrow_with_suffix(error, " (--activation)");
  }
}

}  // namespace

std::shared_ptr<TransformerConfig> make_transformer_config(const TrainSettings& settings) {
  TransformerConfig config;
  config.num_layers = settings.num_layers;
  config.hidden_size = settings.hidden_size;
  config.num_attention_heads = settings.num_attention_heads;
  config.num_query_groups = settings.num_query_groups;
  config.ffn_hidden_size = settings.ffn_hidden_size;
  config.kv_channels = settings.kv_channels;
  config.tensor_model_parallel_size = settings.tensor_model_parallel_size;
  config.sequence_parallel = settings.sequence_parallel;
  config.hidden_dropout = settings.hidden_dropout;
  config.attention_dropout = settings.attention_dropout;
  config.qk_layernorm = settings.qk_layernorm;
  config.apply_query_key_layer_scaling = settings.apply_query_key_layer_scaling;
  config.layernorm_epsilon = settings.norm_epsilon;
  config.layernorm_zero_centered_gamma = settings.apply_layernorm_1p;
  config.normalization = settings.normalization;
  config.add_bias_linear = !settings.disable_bias_linear;
  config.add_qkv_bias = settings.add_qkv_bias;
  config.gated_linear_unit = settings.swiglu;
  config.activation_func = activation_of(settings);
  config.init_method_std = settings.init_method_std;
  config.bf16 = settings.precision == "bf16";
  config.params_dtype = config.bf16 ? DType::bfloat16 : DType::float32;
  config.gradient_accumulation_fusion = true;
  config.recompute_granularity = settings.recompute_granularity;
  config.disable_parameter_transpose_cache = settings.disable_parameter_transpose_cache;
  KitchenFlags flags;
  flags.kitchen_config_file = settings.kitchen_config_file;
  flags.kitchen_recipe_number = settings.kitchen_recipe_number;
  flags.kitchen_recipe_name = settings.kitchen_recipe_name;
  flags.use_kitchen_attention = settings.use_kitchen_attention;
  flags.kitchen_attention_backend = settings.kitchen_attention_backend;
  apply_kitchen_flags(flags, config);
  if (config.quant_recipe) check_recipe_of(settings, *config.quant_recipe);
  return make_config(config);
}

std::shared_ptr<GPTModel> make_model(const TrainSettings& settings,
                                     const std::shared_ptr<TransformerConfig>& config) {
  const std::shared_ptr<BackendSpecProvider> provider = make_provider(settings, *config);
  GPTModelOptions options;
  options.vocab_size = settings.vocab_size;
  options.padded_vocab_size = padded_vocab_size(settings);
  options.max_sequence_length = settings.max_position_embeddings.value_or(settings.seq_length);
  options.share_embeddings_and_output_weights = !settings.untie_embeddings_and_output_weights;
  options.position_embedding_type = settings.position_embedding_type;
  options.rotary = {settings.rotary_base, settings.rotary_percent};
  return std::make_shared<GPTModel>(config, gpt_block_submodules(*provider, *config), options);
}

}  // namespace kitchen::train
