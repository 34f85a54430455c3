#pragma once

#include "kitchen/modules/module.h"
#include "kitchen/recipes/q_flash_attention_params.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace kitchen::modules {

/// Arguments of KitchenFlashAttentionModule; head counts are local.
struct FlashAttentionModuleOptions {
  std::int64_t num_attention_heads = 0;
  std::int64_t num_query_groups = 0;
  std::int64_t kv_channels = 0;
  double softmax_scale = 1.0;  ///< net scale of q·kᵀ
  double attention_dropout = 0.0;  ///< must be 0
  std::string qkv_format = "sbhd";
  std::string attn_mask_type = "causal";
  /// Ext: (left, right) keys around the diagonal; nullopt: none.
  std::optional<std::pair<std::int64_t, std::int64_t>> window_size;
  bool sequence_parallel = false;
  std::int64_t layer_number = 1;
  std::string attention_type = "self";
  std::shared_ptr<const QFlashAttentionParams> qfa_params;  ///< null: bf16, base 2
  std::string module = "KitchenFlashAttentionModule";  ///< path of the layer, for logs and reports
};

/// Causal flash attention: blocks of keys with a running maximum and sum; only the output and the log-sum-exp
/// are kept for backward. With fp8 precisions q, k and v have one scale a head, computed over all of its tokens, so
/// that an output depends on later tokens through the scale; bf16 recipes are strictly causal.
class KitchenFlashAttentionModule : public Module {
 public:
  /// @throws NotImplementedError for dropout, another format than sbhd, and dot precisions that are neither all
  ///         `bf16@bf16` nor those of fa_fp8_e4m3_base_2.
  explicit KitchenFlashAttentionModule(FlashAttentionModuleOptions options);

  /// query [sq, b, np, hn], key and value [sk, b, ng, hn] -> [sq, b, np·hn]. float32 inputs are computed in
  /// float32, which is logged once.
  Tensor forward(const Tensor& query, const Tensor& key, const Tensor& value);

  [[nodiscard]] const FlashAttentionModuleOptions& options() const { return options_; }
  [[nodiscard]] std::string class_name() const override { return "KitchenFlashAttentionModule"; }

 private:
  FlashAttentionModuleOptions options_;
  bool told_float32_ = false;
};

}  // namespace kitchen::modules
