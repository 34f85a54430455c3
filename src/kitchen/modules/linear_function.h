#pragma once

#include "kitchen/autograd/function.h"
#include "kitchen/modules/operand_quantizer.h"
#include "kitchen/modules/quantized_operand.h"
#include "kitchen/recipes/q_linear_params.h"

#include <memory>
#include <optional>
#include <string>

namespace kitchen::modules {

/// Quantized copies of a weight, kept over the micro-batches of a step.
struct WeightCache {
  Operand rowwise;     ///< for fprop
  Operand columnwise;  ///< for dgrad
  std::int64_t version = -1;  ///< of the weight that was quantized
};

/// What a linear layer tells its Function besides the tensors.
struct LinearCall {
  std::string module;                           ///< dotted path or class name, for messages
  std::shared_ptr<const QLinearParams> params;  ///< never null; recipe 1 quantizes nothing
  std::shared_ptr<LinearQuantizers> quantizers = std::make_shared<LinearQuantizers>();  ///< never null
  std::shared_ptr<WeightCache> cache;           ///< null: quantize the weight at each use
  bool refresh_cache = false;                   ///< first micro-batch after a weight update
  bool fuse_wgrad_accumulation = false;         ///< wgrad adds into the weight's main_grad
};

/// y = x·wᵀ (+ bias), and its two backward products, each with operands quantized along the dimension that
/// it reduces (numerics.md S5): fprop x and w along in_features, dgrad g and w along out_features, wgrad g and
/// x along tokens. The bias gradient is the sum of the unquantized g.
///
/// Uses that are recorded for a backward pass are training and enter the quantizers' state; a forward
/// without recording (validation, the first run of a recomputed segment) reads the state and leaves it.
///
/// Of x only what wgrad needs is kept: the columnwise codes if wgrad is quantized, else x itself.
struct LinearFunction : autograd::Function<LinearFunction> {
  struct Saved {
    Operand x_columnwise;
    Tensor weight;
    Operand w_columnwise;  ///< undefined: make it in backward
    LinearCall call;
    Shape x_shape;
    DType x_dtype = DType::float32;
    DType bias_dtype = DType::float32;
    bool has_bias = false;
    [[nodiscard]] std::vector<Tensor> tensors() const;
  };
  static constexpr const char* kName = "Linear";

  /// @param x [..., in_features], weight [out_features, in_features], bias [out_features] or undefined.
  /// @returns [..., out_features] in x's dtype.
  static Tensor forward(autograd::FunctionContext<Saved>& ctx, const Tensor& x, const Tensor& weight,
                        const Tensor& bias, const LinearCall& call);
  static std::vector<Tensor> backward(autograd::FunctionContext<Saved>& ctx,
                                      const std::vector<Tensor>& grads);
};

}  // namespace kitchen::modules
