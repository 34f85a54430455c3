#pragma once

#include "kitchen/base/tensor.h"

namespace kitchen::ops {

/// Kernel: target[i] = convert(source[i]); equal shapes, any strides, high-precision dtypes
/// (float32, float16, bfloat16). Conversion is exact widening or round to nearest even (numerics.md
/// S1.5). Exact.
struct CastKernel {
  static constexpr const char* kName = "cast";
  using Fn = void (*)(const Stream&, ConstView source, View target);
};

/// Kernel: out = alpha·a + beta·b in fp32, one rounding; all three contiguous, same numel, any
/// high-precision dtypes; two products and one sum, no fused multiply-add. `out` may be `a`. Exact.
struct AxpbyKernel {
  static constexpr const char* kName = "axpby";
  using Fn = void (*)(const Stream&, float alpha, ConstView a, float beta, ConstView b, View out);
};

/// Kernel: out = factor·x in fp32, one rounding; equal shapes, any strides. `out` may be `x`.
/// Exact.
struct ScaleKernel {
  static constexpr const char* kName = "scale";
  using Fn = void (*)(const Stream&, float factor, ConstView x, View out);
};

/// Kernel: out = a·b elementwise in fp32, one rounding; contiguous, same numel. Exact.
struct MultiplyKernel {
  static constexpr const char* kName = "multiply";
  using Fn = void (*)(const Stream&, ConstView a, ConstView b, View out);
};

/// Kernel: out[i] = value rounded to the view's dtype (high-precision); any strides.
struct FillKernel {
  static constexpr const char* kName = "fill";
  using Fn = void (*)(const Stream&, float value, View out);
};

/// Kernel: out[r, c] = x[r, c] + bias[c] in fp32, one rounding. x, out [rows, cols] contiguous.
/// Exact.
struct AddBiasKernel {
  static constexpr const char* kName = "add_bias";
  using Fn = void (*)(const Stream&, ConstView x, ConstView bias, View out);
};

/// Kernel: column sums of x [rows, cols] (unit column stride) into out [cols], float32.
/// fp32 sums in chunks of 128 rows, rows ascending, chunk sums added in ascending order (S5.3).
/// Exact. If `accumulate`, the sums are added to what `out` holds.
struct SumRowsKernel {
  static constexpr const char* kName = "sum_rows";
  using Fn = void (*)(const Stream&, ConstView x, View out, bool accumulate);
};

/// Kernel: the sum of all elements of a contiguous tensor into out [1], float32. fp64 partial sums
/// over chunks of 4096 elements (in a chunk 8 interleaved sums, element i to sum i mod 8, added as
/// a binary tree), chunks added in ascending order: the result does not depend on threads. Exact.
struct SumAllKernel {
  static constexpr const char* kName = "sum_all";
  using Fn = void (*)(const Stream&, ConstView x, View out);
};

/// Row-major copy of `x`, or `x` itself (detached handle) if it is contiguous already. Any dtype.
Tensor contiguous(const Tensor& x);

/// `x` converted to `dtype`; `x` itself (detached) if it has it already. Result contiguous when
/// converted.
/// @throws TypeError if either dtype is not float32, float16 or bfloat16.
Tensor cast(const Tensor& x, DType dtype);

/// Copies `source` into `target` (equal shapes, any strides), converting between high-precision
/// dtypes.
void copy_into(const Tensor& source, const Tensor& target);

/// a + b and a · b, shapes equal, result in a's dtype. @throws ValueError naming both shapes.
Tensor add(const Tensor& a, const Tensor& b);
Tensor multiply(const Tensor& a, const Tensor& b);

/// target += alpha · source (equal numel; dtypes may differ, e.g. fp32 main_grad += bf16 gradient).
void add_inplace(const Tensor& target, const Tensor& source, float alpha = 1.0f);

/// factor · x in x's dtype.
Tensor scale(const Tensor& x, float factor);
void scale_inplace(const Tensor& x, float factor);

void fill_inplace(const Tensor& x, float value);

/// x [..., cols] + bias [cols], in x's dtype.
Tensor add_bias(const Tensor& x, const Tensor& bias);

/// Column sums over all leading dimensions of x [..., cols] -> [cols] in float32 (exact order, see
/// kernel). No rows give zeros.
Tensor sum_rows(const Tensor& x);

/// Adds the column sums to `target` [cols], float32.
void sum_rows_into(const Tensor& x, const Tensor& target);

/// Sum of all elements, float32 [1].
Tensor sum_all(const Tensor& x);

}  // namespace kitchen::ops
