#include "kitchen/ops/vocab_parallel_cross_entropy.h"

#include "kitchen/base/error.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/ops/operand_checks.h"

#include <algorithm>

namespace kitchen::ops {

namespace {

void require_logits(const char* op, const Tensor& logits, const Tensor& labels,
                    const VocabularyPart& part) {
  require_high_precision(op, "logits", logits);
  if (logits.rank() != 2) {
    throw ValueError(std::string(op) + ": logits have shape " + to_string(logits.shape()) +
                     "; [tokens, vocabulary of this rank] is wanted");
  }
  if (part.vocab_size < 1 || part.first_id < 0) {
    throw ValueError(std::string(op) + ": vocab_size is " + std::to_string(part.vocab_size) +
                     " and first_id is " + std::to_string(part.first_id) +
                     "; at least 1 and at least 0 are wanted");
  }
  require_contiguous(op, "logits", logits);
  require_dtype(op, "labels", labels, DType::int64);
  require_shape(op, "labels", labels, {logits.dim(0)});
}

void require_statistic(const char* op, const char* name, const Tensor& x, const Shape& shape) {
  require_dtype(op, name, x, DType::float32);
  require_shape(op, name, x, shape);
}

}  // namespace

std::int64_t VocabularyPart::valid(std::int64_t columns) const {
  return std::clamp<std::int64_t>(vocab_size - first_id, 0, columns);
}

Tensor vocabulary_part_max(const Tensor& logits, const Tensor& labels, const VocabularyPart& part) {
  constexpr const char* kOp = "vocabulary_part_max";
  const ContextPtr& context = common_context(kOp, {&logits, &labels});
  require_logits(kOp, logits, labels, part);
  const Tensor largest = Tensor::empty(context, {logits.dim(0)}, DType::float32);
  context->launch<VocabularyPartMaxKernel>({}, logits.const_view(), part.valid(logits.dim(1)),
                                           largest.kernel_view());
  return largest;
}

Tensor vocabulary_part_sums(const Tensor& logits, const Tensor& labels, const Tensor& largest,
                            const VocabularyPart& part) {
  constexpr const char* kOp = "vocabulary_part_sums";
  const ContextPtr& context = common_context(kOp, {&logits, &labels, &largest});
  require_logits(kOp, logits, labels, part);
  require_statistic(kOp, "largest", largest, {logits.dim(0)});
  const Tensor sums = Tensor::empty(context, {2, logits.dim(0)}, DType::float32);
  context->launch<VocabularyPartSumsKernel>(
      {}, logits.const_view(), contiguous(labels).const_view(), contiguous(largest).const_view(),
      part, sums.kernel_view());
  return sums;
}

CrossEntropyResult vocabulary_loss(const Tensor& largest, const Tensor& sums, const Tensor& labels,
                                   std::int64_t vocab_size) {
  constexpr const char* kOp = "vocabulary_loss";
  const ContextPtr& context = common_context(kOp, {&largest, &sums, &labels});
  require_dtype(kOp, "labels", labels, DType::int64);
  require_statistic(kOp, "largest", largest, labels.shape());
  require_statistic(kOp, "sums", sums, {2, labels.numel()});
  const CrossEntropyResult result{Tensor::empty(context, labels.shape(), DType::float32),
                                  Tensor::empty(context, labels.shape(), DType::float32)};
  context->launch<VocabularyLossKernel>({}, contiguous(largest).const_view(),
                                        contiguous(sums).const_view(),
                                        contiguous(labels).const_view(), vocab_size,
                                        result.losses.kernel_view(), result.lse.kernel_view());
  return result;
}

Tensor vocabulary_part_gradient_inplace(const Tensor& dlosses, const Tensor& logits,
                                        const Tensor& labels, const Tensor& lse,
                                        const VocabularyPart& part) {
  constexpr const char* kOp = "vocabulary_part_gradient";
  const ContextPtr& context = common_context(kOp, {&dlosses, &logits, &labels, &lse});
  require_logits(kOp, logits, labels, part);
  require_statistic(kOp, "dlosses", dlosses, {logits.dim(0)});
  require_statistic(kOp, "lse", lse, {logits.dim(0)});
  context->launch<VocabularyPartGradientKernel>(
      {}, contiguous(dlosses).const_view(), logits.const_view(), contiguous(labels).const_view(),
      contiguous(lse).const_view(), part, logits.kernel_view());
  return logits;
}

}  // namespace kitchen::ops
