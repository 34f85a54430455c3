#pragma once

#include "kitchen/base/tensor.h"

/// @file  operand_checks.h
/// @brief What the ops ask of their operands before they launch. Nothing here reads a value.

namespace kitchen::ops {

/// @throws TypeError naming op, operand and dtype unless it is float32, float16 or bfloat16.
void require_high_precision(const char* op, const char* name, const Tensor& tensor);

/// @throws TypeError naming op, operand, found and expected dtype.
void require_dtype(const char* op, const char* name, const Tensor& tensor, DType expected);

/// @throws ValueError naming op, operand, found and expected shape.
void require_shape(const char* op, const char* name, const Tensor& tensor, const Shape& expected);

/// @throws ValueError naming op, operand and shape unless the tensor has at least one dimension and
/// a last
///         size of at least 1.
void require_rows(const char* op, const char* name, const Tensor& tensor);

/// `tensor` seen as [rows, cols] with unit column stride, cols being its last size: a view where
/// the strides allow it, else a dense copy. Undefined stays undefined.
Tensor as_rows(const Tensor& tensor);

/// `tensor` itself if neighbours of the last dimension are neighbours in memory, else a dense copy.
Tensor with_unit_last_stride(const Tensor& tensor);

/// `tensor` itself (detached) if it is contiguous, else a dense copy.
Tensor dense(const Tensor& tensor);

/// x [..., cols] as a contiguous [rows, cols], detached. @throws ValueError for a scalar.
Tensor as_dense_rows(const char* op, const Tensor& x);

/// @throws ValueError unless x is contiguous (in-place ops cannot work on a copy).
void require_contiguous(const char* op, const char* name, const Tensor& x);

}  // namespace kitchen::ops
