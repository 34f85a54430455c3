#pragma once

#include "kitchen/base/init_method.h"
#include "kitchen/config/enums.h"
#include "kitchen/config/model_parallel_config.h"
#include "kitchen/config/recipe_config.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kitchen {

/// Shape and behaviour of a transformer. Megatron's names and defaults; nullopt means derived or
/// off.
struct TransformerConfig : ModelParallelConfig {
  // Sizes
  std::int64_t num_layers = 0;
  std::int64_t hidden_size = 0;
  std::int64_t num_attention_heads = 0;
  std::optional<std::int64_t> num_query_groups;  ///< default: num_attention_heads
  std::optional<std::int64_t> ffn_hidden_size;   ///< default: 4·hidden_size
  std::optional<std::int64_t> kv_channels;       ///< head size; default: hidden_size / heads

  // Attention
  std::optional<double> softmax_scale;  ///< default: 1/sqrt(kv_channels), applied by attention
  std::string softmax_type = "vanilla";
  double hidden_dropout = 0.1;     ///< probability
  double attention_dropout = 0.1;  ///< probability
  bool qk_layernorm = false;
  bool apply_query_key_layer_scaling = false;
  bool attention_softmax_in_fp32 = true;
  bool masked_softmax_fusion = false;
  std::optional<std::pair<std::int64_t, std::int64_t>> window_size;  ///< keys to the left and right
  bool multi_latent_attention = false;
  std::optional<std::string> cp_comm_type;

  // Norms, biases, activation
  double layernorm_epsilon = 1e-5;
  bool layernorm_zero_centered_gamma = false;
  std::string normalization = "LayerNorm";  ///< or "RMSNorm"
  bool add_bias_linear = true;
  bool add_qkv_bias = false;
  bool gated_linear_unit = false;
  ActivationFunc activation_func = ActivationFunc::gelu;
  std::optional<double> activation_func_clamp_value;
  double glu_linear_offset = 0.0;
  bool bias_activation_fusion = false;
  bool bias_dropout_fusion = false;

  // Initialisation. A null method means normal(0, init_method_std); for the output layers of each
  // block normal(0, output_layer_init_std()). Modules draw those by global position (same weights
  // on any split).
  InitMethod init_method;
  InitMethod output_layer_init_method;
  double init_method_std = 0.02;
  bool init_model_with_meta_device = false;

  // Quantization
  bool use_kitchen = false;
  bool use_kitchen_attention = false;
  std::string kitchen_attention_backend =
      "sdpa";  ///< or "fa"; read when use_kitchen_attention is set
  std::shared_ptr<const RecipeConfig> quant_recipe;
  std::optional<std::string> fp8;
  std::optional<std::string> fp4;
  bool disable_parameter_transpose_cache = false;
  std::optional<std::string> symmetric_ar_type;

  // Recompute
  std::optional<std::string> recompute_granularity;
  std::set<std::string> recompute_modules = {"core_attn"};

  // Mixture of experts
  std::optional<std::int64_t> num_moe_experts;
  /// n: experts on the layers whose zero-based index n divides; a list says it for each layer by 0
  /// or 1.
  std::variant<std::int64_t, std::vector<std::int64_t>> moe_layer_freq = std::int64_t{1};
  std::optional<std::int64_t> moe_ffn_hidden_size;  ///< default: ffn_hidden_size
  std::int64_t moe_router_topk = 2;
  std::string moe_router_load_balancing_type = "aux_loss";
  double moe_aux_loss_coeff = 0.0;
  std::optional<double> moe_z_loss_coeff;
  std::string moe_router_score_function = "softmax";
  bool moe_router_pre_softmax = false;
  std::optional<double> moe_router_topk_scaling_factor;
  std::optional<std::string> moe_router_dtype;
  bool moe_grouped_gemm = false;
  bool moe_use_legacy_grouped_gemm = false;
  std::string moe_token_dispatcher_type = "allgather";
  bool moe_apply_probs_on_input = false;
  std::optional<std::int64_t> moe_shared_expert_intermediate_size;

  /// init_method_std / sqrt(2·num_layers).
  [[nodiscard]] double output_layer_init_std() const;

  /// Also derives sizes, and turns fp32 softmax on under query-key layer scaling.
  void finalize() override;

  /// @throws ValueError naming both numbers where two sizes do not fit; for query groups it lists
  /// the allowed
  ///         TP sizes. AssertionError "Bias in Moe is only supported when ETP==1".
  void validate() override;
};

}  // namespace kitchen
