#include "kitchen/modules/kitchen_flash_attention_module.h"

#include "kitchen/autograd/nn_functions.h"
#include "kitchen/autograd/view_functions.h"
#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/recipes/predefined.h"

#include <utility>

namespace kitchen::modules {

namespace {

void require_bf16(const char* dot, const std::string& precisions) {
  if (precisions == "bf16@bf16") return;
  throw NotImplementedError(std::string("KitchenFlashAttentionModule: ") + dot + " is '" + precisions +
                            "'; only bf16@bf16 has a kernel");
}

}  // namespace

KitchenFlashAttentionModule::KitchenFlashAttentionModule(FlashAttentionModuleOptions options)
    : options_(std::move(options)) {
  if (!options_.qfa_params) {
    options_.qfa_params = get_qfa_params_from_recipe_name("triton_fa_bf16_for_all_base_2");
  }
  if (options_.attention_dropout > 0.0) {
    throw NotImplementedError("KitchenFlashAttentionModule: attention_dropout is " +
                              std::to_string(options_.attention_dropout) +
                              "; the kernel has no dropout, set it to 0");
  }
  if (options_.qkv_format != "sbhd") {
    throw NotImplementedError("KitchenFlashAttentionModule: qkv_format is '" + options_.qkv_format +
                              "'; only 'sbhd' is supported");
  }
  const QFlashAttentionParams& params = *options_.qfa_params;
  require_bf16("qk_dot_precisions", params.qk_dot_precisions);
  require_bf16("pv_dot_precisions", params.pv_dot_precisions);
  require_bf16("dv_dot_precisions", params.dv_dot_precisions);
  require_bf16("dp_dot_precisions", params.dp_dot_precisions);
  require_bf16("dq_dot_precisions", params.dq_dot_precisions);
  require_bf16("dk_dot_precisions", params.dk_dot_precisions);
}

Tensor KitchenFlashAttentionModule::forward(const Tensor& query, const Tensor& key,
                                            const Tensor& value) {
  if (query.dtype() == DType::float32 && !told_float32_) {
    told_float32_ = true;
    logger().info("KitchenFlashAttentionModule: float32 inputs are computed in float32, not in bf16");
  }
  ops::FlashAttentionOptions call;
  call.scale = static_cast<float>(options_.softmax_scale);
  call.causal = true;
  if (options_.window_size) call.window = *options_.window_size;
  call.natural_exp = options_.qfa_params->use_natural_transcendental_func;
  const Tensor out = autograd::flash_attention(query, key, value, call);
  return autograd::reshape(out, {out.dim(0), out.dim(1), out.dim(2) * out.dim(3)});
}

}  // namespace kitchen::modules
