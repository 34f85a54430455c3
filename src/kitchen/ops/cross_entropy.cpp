#include "kitchen/ops/cross_entropy.h"

#include "kitchen/base/error.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/ops/operand_checks.h"

namespace kitchen::ops {

namespace {

void require_logits(const char* op, const Tensor& logits, const Tensor& labels,
                    std::int64_t vocab_size) {
  require_high_precision(op, "logits", logits);
  if (logits.rank() != 2) {
    throw ValueError(std::string(op) + ": logits have shape " + to_string(logits.shape()) +
                     "; [tokens, vocabulary] is wanted");
  }
  if (vocab_size < 1 || vocab_size > logits.dim(1)) {
    throw ValueError(std::string(op) + ": vocab_size is " + std::to_string(vocab_size) +
                     ", but it must be at least 1 and at most the " +
                     std::to_string(logits.dim(1)) + " columns of the logits");
  }
  require_dtype(op, "labels", labels, DType::int64);
  require_shape(op, "labels", labels, {logits.dim(0)});
}

bool has_unit_columns(const Tensor& x) {
  return x.dim(1) <= 1 || x.strides()[1] == 1;
}

}  // namespace

CrossEntropyResult cross_entropy_forward(const Tensor& logits, const Tensor& labels,
                                         std::int64_t vocab_size) {
  constexpr const char* kOp = "cross_entropy_forward";
  const ContextPtr& context = common_context(kOp, {&logits, &labels});
  require_logits(kOp, logits, labels, vocab_size);
  const CrossEntropyResult result{Tensor::empty(context, {logits.dim(0)}, DType::float32),
                                  Tensor::empty(context, {logits.dim(0)}, DType::float32)};
  const Tensor rows = has_unit_columns(logits) ? logits : contiguous(logits);
  context->launch<CrossEntropyForwardKernel>({}, rows.const_view(), contiguous(labels).const_view(),
                                             vocab_size, result.losses.kernel_view(),
                                             result.lse.kernel_view());
  return result;
}

Tensor cross_entropy_backward_inplace(const Tensor& dlosses, const Tensor& logits,
                                      const Tensor& labels, const Tensor& lse,
                                      std::int64_t vocab_size) {
  constexpr const char* kOp = "cross_entropy_backward";
  const ContextPtr& context = common_context(kOp, {&dlosses, &logits, &labels, &lse});
  require_logits(kOp, logits, labels, vocab_size);
  require_dtype(kOp, "dlosses", dlosses, DType::float32);
  require_shape(kOp, "dlosses", dlosses, {logits.dim(0)});
  require_dtype(kOp, "lse", lse, DType::float32);
  require_shape(kOp, "lse", lse, {logits.dim(0)});
  if (!has_unit_columns(logits)) require_contiguous(kOp, "logits", logits);
  context->launch<CrossEntropyBackwardKernel>(
      {}, contiguous(dlosses).const_view(), logits.const_view(), contiguous(labels).const_view(),
      contiguous(lse).const_view(), vocab_size, logits.kernel_view());
  return logits;
}

}  // namespace kitchen::ops
