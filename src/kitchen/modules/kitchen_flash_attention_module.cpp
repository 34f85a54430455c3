#include "kitchen/modules/kitchen_flash_attention_module.h"

#include "kitchen/autograd/nn_functions.h"
#include "kitchen/autograd/view_functions.h"
#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/modules/fp8_flash_attention.h"
#include "kitchen/recipes/predefined.h"

#include <utility>

namespace kitchen::modules {

namespace {

using Dot = std::string QFlashAttentionParams::*;

struct NamedDot {
  const char* name;
  Dot dot;
  const char* fp8;  ///< its precisions in the fp8 kernel (numerics.md S7.4)
};

constexpr NamedDot kDots[] = {
    {"qk_dot_precisions", &QFlashAttentionParams::qk_dot_precisions, "e4m3@e4m3"},
    {"pv_dot_precisions", &QFlashAttentionParams::pv_dot_precisions, "e4m3@e4m3"},
    {"dv_dot_precisions", &QFlashAttentionParams::dv_dot_precisions, "e4m3@e5m2"},
    {"dp_dot_precisions", &QFlashAttentionParams::dp_dot_precisions, "e5m2@e4m3"},
    {"dq_dot_precisions", &QFlashAttentionParams::dq_dot_precisions, "e5m2@e4m3"},
    {"dk_dot_precisions", &QFlashAttentionParams::dk_dot_precisions, "e5m2@e4m3"},
};

bool is_fp8(const QFlashAttentionParams& params) {
  return params.qk_dot_precisions != "bf16@bf16";
}

/// The first product tells which kernel is meant; the others must agree with it.
void require_kernel(const QFlashAttentionParams& params) {
  for (const NamedDot& dot : kDots) {
    const std::string expected = is_fp8(params) ? dot.fp8 : "bf16@bf16";
    const std::string& found = params.*dot.dot;
    if (found == expected) continue;
    throw NotImplementedError(std::string("KitchenFlashAttentionModule: ") + dot.name + " is '" +
                              found + "', expected '" + expected +
                              "'; kernels exist for bf16@bf16 in all products and for the fp8 "
                              "precisions of fa_fp8_e4m3_base_2");
  }
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
  require_kernel(*options_.qfa_params);
}

Tensor KitchenFlashAttentionModule::forward(const Tensor& query, const Tensor& key,
                                            const Tensor& value) {
  const QFlashAttentionParams& params = *options_.qfa_params;
  if (query.dtype() == DType::float32 && !is_fp8(params) && !told_float32_) {
    told_float32_ = true;
    logger().info("KitchenFlashAttentionModule: float32 inputs are computed in float32, not in bf16");
  }
  ops::FlashAttentionOptions call;
  call.scale = static_cast<float>(options_.softmax_scale);
  call.causal = true;
  if (options_.window_size) call.window = *options_.window_size;
  call.natural_exp = params.use_natural_transcendental_func;
  call.p_scale = static_cast<float>(params.p_scale);
  const Tensor out = is_fp8(params)
                         ? fp8_flash_attention(query, key, value, call, options_.module)
                         : autograd::flash_attention(query, key, value, call);
  return autograd::reshape(out, {out.dim(0), out.dim(1), out.dim(2) * out.dim(3)});
}

}  // namespace kitchen::modules
