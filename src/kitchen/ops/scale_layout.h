#pragma once

#include "kitchen/formats/quantized_matrix.h"
#include "kitchen/formats/scale_layout.h"

#include <string>

/// @file  scale_layout.h
/// @brief Scales in the order of a GEMM backend, and back. Exact: bytes move, none changes.

namespace kitchen {

/// "k_major".
std::string to_string(formats::ScaleLayout layout);

}  // namespace kitchen

namespace kitchen::ops {

/// Scales in a backend's order. A type of its own, so that they cannot be taken for the row-major
/// scales of a QuantizedMatrix.
struct LaidOutScales {
  Tensor values;  ///< [slices, scale_layout_size(...)], the dtype of the scales
  formats::ScaleLayout layout = formats::ScaleLayout::row_major;
  Shape logical_shape;  ///< of the row-major scales, [slices..., rows, cols]
};

/// Kernel: scales [slices, rows, cols] contiguous to laid_out [slices, scale_layout_size], all of
/// it written; dtypes agree.
struct ArrangeScalesKernel {
  static constexpr const char* kName = "arrange_scales";
  using Fn = void (*)(const Stream&, ConstView scales, formats::ScaleLayout layout, View laid_out);
};

/// Kernel: the inverse.
struct RestoreScalesKernel {
  static constexpr const char* kName = "restore_scales";
  using Fn = void (*)(const Stream&, ConstView laid_out, formats::ScaleLayout layout, View scales);
};

/// The layout that tensor-core products of this spec read.
/// @throws ValueError for specs without blocks of columns, whose scales need none.
formats::ScaleLayout gemm_scale_layout(const QuantizeSpec& spec);

/// The scales of x in gemm_scale_layout(x.spec).
LaidOutScales arrange_scales(const QuantizedMatrix& x);

/// Row-major scales of scales.logical_shape.
/// @throws ValueError naming both layouts unless `scales` has the layout of `spec`, or if its size
/// is not that of its logical shape.
Tensor restore_scales(const LaidOutScales& scales, const QuantizeSpec& spec);

}  // namespace kitchen::ops
