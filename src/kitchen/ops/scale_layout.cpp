#include "kitchen/ops/scale_layout.h"

#include "kitchen/base/error.h"

namespace kitchen {

std::string to_string(formats::ScaleLayout layout) {
  using formats::ScaleLayout;
  switch (layout) {
    case ScaleLayout::row_major:
      return "row_major";
    case ScaleLayout::k_major:
      return "k_major";
    case ScaleLayout::padded_rows:
      return "padded_rows";
    case ScaleLayout::tiles_128x4:
      return "tiles_128x4";
  }
  throw ValueError("ScaleLayout: unknown enumerator " + std::to_string(static_cast<int>(layout)));
}

}  // namespace kitchen

namespace kitchen::ops {

using formats::ScaleLayout;

namespace {

Tensor as_slices(const Tensor& scales) {
  return scales.view({num_slices(scales.shape()), scales.dim(-2), scales.dim(-1)});
}

}  // namespace

ScaleLayout gemm_scale_layout(const QuantizeSpec& spec) {
  if (spec.granularity.cols == 0) {
    throw ValueError("gemm_scale_layout: '" + to_string(spec) +
                     "' has no blocks along the reduction; its scales have one order only");
  }
  if (spec.has_byte_scales()) return ScaleLayout::tiles_128x4;
  return spec.granularity.rows == 1 ? ScaleLayout::k_major : ScaleLayout::padded_rows;
}

LaidOutScales arrange_scales(const QuantizedMatrix& x) {
  const ContextPtr& context = common_context("arrange_scales", {&x.scale_inv});
  LaidOutScales result;
  result.layout = gemm_scale_layout(x.spec);
  result.logical_shape = x.scale_inv.shape();
  const Tensor scales = as_slices(x.scale_inv);
  const std::int64_t size = scale_layout_size(result.layout, scales.dim(1), scales.dim(2));
  result.values = Tensor::empty(context, {scales.dim(0), size}, x.scale_inv.dtype());
  context->launch<ArrangeScalesKernel>("", scales.const_view(), result.layout,
                                       result.values.kernel_view());
  return result;
}

Tensor restore_scales(const LaidOutScales& scales, const QuantizeSpec& spec) {
  const ContextPtr& context = common_context("restore_scales", {&scales.values});
  const ScaleLayout wanted = gemm_scale_layout(spec);
  if (scales.layout != wanted) {
    throw ValueError("restore_scales: the scales are " + to_string(scales.layout) + ", but '" +
                     to_string(spec) + "' wants " + to_string(wanted) +
                     "; arrange_scales makes it");
  }
  const Tensor out = Tensor::empty(context, scales.logical_shape, scales.values.dtype());
  const Tensor slices = as_slices(out);
  const Shape expected{slices.dim(0), scale_layout_size(wanted, slices.dim(1), slices.dim(2))};
  if (scales.values.shape() != expected) {
    throw ValueError("restore_scales: " + to_string(wanted) + " scales of " +
                     to_string(scales.logical_shape) + " have shape " +
                     to_string(scales.values.shape()) + ", expected " + to_string(expected));
  }
  context->launch<RestoreScalesKernel>("", scales.values.const_view(), wanted,
                                       slices.kernel_view());
  return out;
}

}  // namespace kitchen::ops
