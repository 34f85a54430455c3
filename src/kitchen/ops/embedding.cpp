#include "kitchen/ops/embedding.h"

#include "kitchen/base/error.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/ops/operand_checks.h"

namespace kitchen::ops {

namespace {

void require_table(const char* op, const char* name, const Tensor& table) {
  if (table.rank() == 2 && (table.dim(1) <= 1 || table.strides()[1] == 1)) return;
  throw ValueError(std::string(op) + ": " + name + " has shape " + to_string(table.shape()) +
                   " and strides " + to_string(table.strides()) +
                   "; a matrix [rows, cols] with unit column stride is wanted");
}

}  // namespace

Tensor embedding_forward(const Tensor& ids, const Tensor& table, std::int64_t first_id) {
  constexpr const char* kOp = "embedding_forward";
  const ContextPtr& context = common_context(kOp, {&ids, &table});
  require_dtype(kOp, "ids", ids, DType::int64);
  require_high_precision(kOp, "table", table);
  require_table(kOp, "table", table);
  const Tensor flat_ids = contiguous(ids).view({ids.numel()});
  Shape shape = ids.shape();
  shape.push_back(table.dim(1));
  const Tensor out = Tensor::empty(context, std::move(shape), table.dtype());
  context->launch<EmbeddingForwardKernel>({}, flat_ids.const_view(), table.const_view(), first_id,
                                          out.view({ids.numel(), table.dim(1)}).kernel_view());
  return out;
}

void embedding_backward_into(const Tensor& dy, const Tensor& ids, const Tensor& dtable,
                             std::int64_t first_id) {
  constexpr const char* kOp = "embedding_backward";
  const ContextPtr& context = common_context(kOp, {&dy, &ids, &dtable});
  require_dtype(kOp, "ids", ids, DType::int64);
  require_high_precision(kOp, "dy", dy);
  require_dtype(kOp, "dtable", dtable, DType::float32);
  require_table(kOp, "dtable", dtable);
  Shape shape = ids.shape();
  shape.push_back(dtable.dim(1));
  require_shape(kOp, "dy", dy, shape);
  context->launch<EmbeddingBackwardKernel>({}, as_dense_rows(kOp, dy).const_view(),
                                           contiguous(ids).view({ids.numel()}).const_view(),
                                           first_id, dtable.kernel_view());
}

}  // namespace kitchen::ops
