#include "kitchen/ops/require.h"

#include "kitchen/base/error.h"
#include "kitchen/ops/elementwise.h"

namespace kitchen::ops {

namespace {

std::string subject(const char* op, const char* name) {
  return std::string(op) + ": " + name + " has ";
}

}  // namespace

void require_high_precision(const char* op, const char* name, const Tensor& x) {
  if (is_high_precision(x.dtype())) return;
  throw TypeError(subject(op, name) + "dtype " + to_string(x.dtype()) +
                  "; float32, bfloat16 or float16 is wanted");
}

void require_dtype(const char* op, const char* name, const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return;
  throw TypeError(subject(op, name) + "dtype " + to_string(x.dtype()) + "; " + to_string(dtype) +
                  " is wanted");
}

void require_shape(const char* op, const char* name, const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return;
  throw ValueError(subject(op, name) + "shape " + to_string(x.shape()) + "; " + to_string(shape) +
                   " is wanted, nothing is broadcast");
}

void require_contiguous(const char* op, const char* name, const Tensor& x) {
  if (x.is_contiguous()) return;
  throw ValueError(subject(op, name) + "shape " + to_string(x.shape()) + " with strides " +
                   to_string(x.strides()) + "; a contiguous tensor is wanted");
}

Tensor as_rows(const char* op, const Tensor& x) {
  if (x.rank() == 0) throw ValueError(std::string(op) + ": a scalar has no columns");
  std::int64_t rows = 1;
  for (std::int64_t i = 0; i + 1 < x.rank(); ++i) rows *= x.dim(i);
  return contiguous(x).view({rows, x.dim(-1)});
}

}  // namespace kitchen::ops
