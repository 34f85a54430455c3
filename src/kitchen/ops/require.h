#pragma once

#include "kitchen/base/tensor.h"

#include <string>

namespace kitchen::ops {

/// Checks that several ops make of their operands. `op` and `name` begin the message.

/// @throws TypeError unless x is float32, bfloat16 or float16.
void require_high_precision(const char* op, const char* name, const Tensor& x);

/// @throws TypeError unless x has `dtype`.
void require_dtype(const char* op, const char* name, const Tensor& x, DType dtype);

/// @throws ValueError naming both shapes unless x has `shape`.
void require_shape(const char* op, const char* name, const Tensor& x, const Shape& shape);

/// @throws ValueError unless x is contiguous (in-place ops cannot work on a copy).
void require_contiguous(const char* op, const char* name, const Tensor& x);

/// x [..., cols] as a contiguous [rows, cols], detached. @throws ValueError for a scalar.
Tensor as_rows(const char* op, const Tensor& x);

}  // namespace kitchen::ops
