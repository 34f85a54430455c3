#include "kitchen/ops/operand_checks.h"

#include "kitchen/base/error.h"
#include "kitchen/base/memory_kernels.h"

namespace kitchen::ops {

namespace {

std::string subject(const char* op, const char* name) {
  return std::string(op) + ": " + name;
}

Tensor dense_copy(const Tensor& tensor) {
  const Tensor copy = Tensor::empty(tensor.context(), tensor.shape(), tensor.dtype());
  tensor.context()->launch<CopyStridedKernel>({}, tensor.const_view(), copy.kernel_view());
  return copy;
}

bool last_stride_is_one(const Tensor& tensor) {
  return tensor.rank() == 0 || tensor.dim(-1) <= 1 || tensor.strides().back() == 1;
}

/// True if the leading dimensions can be walked with one stride.
bool leading_dimensions_merge(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  const Shape& strides = tensor.strides();
  std::int64_t expected = 0;
  bool is_first = true;
  for (std::size_t i = shape.size() - 1; i-- > 0;) {
    if (shape[i] == 1) continue;
    if (!is_first && strides[i] != expected) return false;
    expected = strides[i] * shape[i];
    is_first = false;
  }
  return true;
}

}  // namespace

void require_high_precision(const char* op, const char* name, const Tensor& tensor) {
  if (!tensor.defined()) {
    throw ValueError(subject(op, name) + " is undefined; a tensor is required");
  }
  if (is_high_precision(tensor.dtype())) return;
  throw TypeError(subject(op, name) + " has dtype " + to_string(tensor.dtype()) +
                  "; expected float32, float16 or bfloat16 (dequantize or cast it first)");
}

void require_dtype(const char* op, const char* name, const Tensor& tensor, DType expected) {
  if (!tensor.defined()) {
    throw ValueError(subject(op, name) + " is undefined; a tensor is required");
  }
  if (tensor.dtype() == expected) return;
  throw TypeError(subject(op, name) + " has dtype " + to_string(tensor.dtype()) + "; expected " +
                  to_string(expected) + " (cast it first)");
}

void require_shape(const char* op, const char* name, const Tensor& tensor, const Shape& expected) {
  if (!tensor.defined()) {
    throw ValueError(subject(op, name) + " is undefined; a tensor is required");
  }
  if (tensor.shape() == expected) return;
  throw ValueError(subject(op, name) + " has shape " + to_string(tensor.shape()) + "; expected " +
                   to_string(expected));
}

void require_rows(const char* op, const char* name, const Tensor& tensor) {
  if (tensor.rank() >= 1 && tensor.dim(-1) >= 1) return;
  throw ValueError(subject(op, name) + " has shape " + to_string(tensor.shape()) +
                   "; expected at least one dimension and a last size of at least 1");
}

Tensor as_rows(const Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  const std::int64_t cols = tensor.dim(-1);
  const Shape rows{cols == 0 ? 0 : tensor.numel() / cols, cols};
  if (!last_stride_is_one(tensor) || !leading_dimensions_merge(tensor)) {
    return dense_copy(tensor).view(rows);
  }
  return tensor.detach().view(rows);
}

Tensor with_unit_last_stride(const Tensor& tensor) {
  return last_stride_is_one(tensor) ? tensor.detach() : dense_copy(tensor);
}

Tensor dense(const Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  return tensor.is_contiguous() ? tensor.detach() : dense_copy(tensor);
}

Tensor as_dense_rows(const char* op, const Tensor& x) {
  if (x.rank() == 0) throw ValueError(std::string(op) + ": a scalar has no columns");
  std::int64_t rows = 1;
  for (std::int64_t i = 0; i + 1 < x.rank(); ++i) rows *= x.dim(i);
  return dense(x).view({rows, x.dim(-1)});
}

void require_contiguous(const char* op, const char* name, const Tensor& x) {
  if (x.is_contiguous()) return;
  throw ValueError(subject(op, name) + " has shape " + to_string(x.shape()) + " with strides " +
                   to_string(x.strides()) + "; a contiguous tensor is wanted");
}

}  // namespace kitchen::ops
