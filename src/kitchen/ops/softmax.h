#pragma once

#include "kitchen/base/tensor.h"

namespace kitchen::ops {

struct SoftmaxOptions {
  float scale = 1.0f;              ///< multiplies the scores in fp32 before the mask
  bool causal = false;             ///< key j is masked for query i if j > i + sk - sq
  float masked_value = -10000.0f;  ///< score of a masked position; -INFINITY for the module path
};

/// Kernel: softmax over the last dimension of scores [b, np, sq, sk] (any dtype, contiguous) in
/// fp32: the row maximum is subtracted, the sum is fp32 in the order of NormForwardKernel, e / sum,
/// one rounding to probs. Exact. mask: boolean view broadcast to [b, np, sq, sk] by zero strides,
/// true = masked; or undefined. A row whose every score is -inf gives 0 (never NaN). A NaN score
/// that is not masked makes its row NaN.
struct SoftmaxForwardKernel {
  static constexpr const char* kName = "softmax_forward";
  using Fn = void (*)(const Stream&, ConstView scores, ConstView mask, View probs,
                      const SoftmaxOptions&);
};

/// Kernel: dscores = scale · (probs·(dprobs - Σ probs·dprobs)), fp32 inside, sum as above; masked
/// positions are 0 whatever probs holds: with masked_value -10000 an all-masked row has probs > 0.
/// Exact.
struct SoftmaxBackwardKernel {
  static constexpr const char* kName = "softmax_backward";
  using Fn = void (*)(const Stream&, ConstView dprobs, ConstView probs, ConstView mask,
                      View dscores, const SoftmaxOptions&);
};

/// @param mask boolean, broadcastable to scores' shape [b, np, sq, sk] (sizes 1 repeat), or
/// undefined.
/// @returns probabilities of scores' shape and dtype.
/// @throws ValueError on rank or a mask that does not broadcast; TypeError on dtypes.
Tensor softmax_forward(const Tensor& scores, const Tensor& mask, const SoftmaxOptions& options);

/// Gradient with respect to the scores, in the dtype of `probs`; dprobs may have another one.
Tensor softmax_backward(const Tensor& dprobs, const Tensor& probs, const Tensor& mask,
                        const SoftmaxOptions& options);

}  // namespace kitchen::ops
