#include "kitchen/ops/softmax.h"

#include "kitchen/base/error.h"
#include "kitchen/ops/operand_checks.h"

namespace kitchen::ops {

namespace {

void check_scores(const char* op, const char* name, const Tensor& scores) {
  require_high_precision(op, name, scores);
  if (scores.rank() == 4) return;
  throw ValueError(std::string(op) + ": " + name + " has shape " + to_string(scores.shape()) +
                   "; expected [b, np, sq, sk]");
}

/// The mask with stride 0 along its sizes of 1, so that kernels index it like the scores.
ConstView broadcast_mask(const char* op, const Tensor& mask, const Shape& shape) {
  if (!mask.defined()) return {};
  require_dtype(op, "mask", mask, DType::boolean);
  bool fits = mask.rank() == 4;
  for (std::size_t i = 0; fits && i < 4; ++i) {
    fits = mask.shape()[i] == shape[i] || mask.shape()[i] == 1;
  }
  if (!fits) {
    throw ValueError(std::string(op) + ": mask has shape " + to_string(mask.shape()) +
                     ", which does not broadcast to the scores' " + to_string(shape) +
                     "; each of its 4 sizes must be equal or 1");
  }
  ConstView view = mask.const_view();
  for (std::size_t i = 0; i < 4; ++i) {
    if (view.shape[i] != shape[i]) view.strides[i] = 0;
    view.shape[i] = shape[i];
  }
  return view;
}

}  // namespace

Tensor softmax_forward(const Tensor& scores, const Tensor& mask, const SoftmaxOptions& options) {
  const char* op = "softmax_forward";
  check_scores(op, "scores", scores);
  const ContextPtr& context = common_context(op, {&scores, &mask});
  const ConstView mask_view = broadcast_mask(op, mask, scores.shape());
  const Tensor probs = Tensor::empty(context, scores.shape(), scores.dtype());
  context->launch<SoftmaxForwardKernel>({}, dense(scores).const_view(), mask_view,
                                        probs.kernel_view(), options);
  return probs;
}

Tensor softmax_backward(const Tensor& dprobs, const Tensor& probs, const Tensor& mask,
                        const SoftmaxOptions& options) {
  const char* op = "softmax_backward";
  check_scores(op, "probs", probs);
  require_high_precision(op, "dprobs", dprobs);
  require_shape(op, "dprobs", dprobs, probs.shape());
  const ContextPtr& context = common_context(op, {&dprobs, &probs, &mask});
  const ConstView mask_view = broadcast_mask(op, mask, probs.shape());
  const Tensor dscores = Tensor::empty(context, probs.shape(), probs.dtype());
  context->launch<SoftmaxBackwardKernel>({}, dense(dprobs).const_view(), dense(probs).const_view(),
                                         mask_view, dscores.kernel_view(), options);
  return dscores;
}

}  // namespace kitchen::ops
