#include "kitchen/ops/activation.h"

#include "kitchen/base/error.h"
#include "kitchen/ops/operand_checks.h"

namespace kitchen::ops {

namespace {

/// Shape of y for x [..., f], or [..., 2f] when gated.
Shape output_shape(const char* op, const Tensor& x, const ActivationOptions& options) {
  Shape shape = x.shape();
  if (!options.gated) return shape;
  if (shape.back() % 2 != 0) {
    throw ValueError(std::string(op) + ": x has last size " + std::to_string(shape.back()) +
                     "; a gated activation needs an even one, [gate, linear]");
  }
  shape.back() /= 2;
  return shape;
}

void check_input(const char* op, const Tensor& x, const Tensor& bias) {
  require_high_precision(op, "x", x);
  require_rows(op, "x", x);
  if (!bias.defined()) return;
  require_high_precision(op, "bias", bias);
  require_shape(op, "bias", bias, {x.dim(-1)});
}

ConstView view_or_none(const Tensor& tensor) {
  return tensor.defined() ? tensor.const_view() : ConstView{};
}

}  // namespace

std::string to_string(Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return "gelu";
    case Activation::gelu_tanh:
      return "gelu_tanh";
    case Activation::silu:
      return "silu";
    case Activation::relu:
      return "relu";
  }
  return "unknown";
}

Activation activation_from_string(std::string_view text) {
  for (const Activation activation :
       {Activation::gelu, Activation::gelu_tanh, Activation::silu, Activation::relu}) {
    if (to_string(activation) == text) return activation;
  }
  throw ValueError("activation '" + std::string(text) +
                   "' is not known; expected one of gelu, gelu_tanh, silu, relu");
}

Tensor activation_forward(const Tensor& x, const Tensor& bias, const ActivationOptions& options) {
  const char* op = "activation_forward";
  check_input(op, x, bias);
  const ContextPtr& context = common_context(op, {&x, &bias});
  const Tensor y = Tensor::empty(context, output_shape(op, x, options), x.dtype());
  const Tensor rows = as_rows(dense(x));
  context->launch<ActivationForwardKernel>({}, rows.const_view(), view_or_none(dense(bias)),
                                           as_rows(y).kernel_view(), options);
  return y;
}

Tensor activation_backward(const Tensor& dy, const Tensor& x, const Tensor& bias,
                           const ActivationOptions& options) {
  const char* op = "activation_backward";
  check_input(op, x, bias);
  require_high_precision(op, "dy", dy);
  require_shape(op, "dy", dy, output_shape(op, x, options));
  const ContextPtr& context = common_context(op, {&dy, &x, &bias});
  const Tensor dx = Tensor::empty(context, x.shape(), x.dtype());
  context->launch<ActivationBackwardKernel>(
      {}, as_rows(dense(dy)).const_view(), as_rows(dense(x)).const_view(),
      view_or_none(dense(bias)), as_rows(dx).kernel_view(), options);
  return dx;
}

}  // namespace kitchen::ops
