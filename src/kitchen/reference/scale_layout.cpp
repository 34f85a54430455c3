#include "kitchen/reference/scale_layout.h"

#include "kitchen/ops/scale_layout.h"

#include <cstring>

namespace kitchen::reference {

namespace {

using formats::ScaleLayout;

/// Calls body(index in row-major order, index in the layout) for every scale.
template <class Body>
void for_each_scale(const std::array<std::int64_t, kMaxRank>& shape, ScaleLayout layout,
                    const Body& body) {
  const std::int64_t rows = shape[1];
  const std::int64_t cols = shape[2];
  const std::int64_t size = scale_layout_size(layout, rows, cols);
  for (std::int64_t row = 0; row < shape[0] * rows; ++row) {
    const std::int64_t start = row / rows * size;
    for (std::int64_t col = 0; col < cols; ++col) {
      body(row * cols + col, start + scale_layout_offset(layout, row % rows, col, rows, cols));
    }
  }
}

template <class Element>
void arrange(const ConstView& scales, ScaleLayout layout, const View& laid_out) {
  const auto* from = static_cast<const Element*>(scales.data);
  auto* to = static_cast<Element*>(laid_out.data);
  for_each_scale(scales.shape, layout, [&](std::int64_t i, std::int64_t j) { to[j] = from[i]; });
}

template <class Element>
void restore(const ConstView& laid_out, ScaleLayout layout, const View& scales) {
  const auto* from = static_cast<const Element*>(laid_out.data);
  auto* to = static_cast<Element*>(scales.data);
  for_each_scale(scales.shape, layout, [&](std::int64_t i, std::int64_t j) { to[i] = from[j]; });
}

void arrange_scales(const Stream& /*stream*/, ConstView scales, ScaleLayout layout, View laid_out) {
  const std::int64_t bytes = laid_out.numel() * size_of(laid_out.dtype);
  if (bytes > 0) std::memset(laid_out.data, 0, static_cast<std::size_t>(bytes));
  if (scales.dtype == DType::float32) return arrange<float>(scales, layout, laid_out);
  arrange<std::uint8_t>(scales, layout, laid_out);
}

void restore_scales(const Stream& /*stream*/, ConstView laid_out, ScaleLayout layout, View scales) {
  if (scales.dtype == DType::float32) return restore<float>(laid_out, layout, scales);
  restore<std::uint8_t>(laid_out, layout, scales);
}

}  // namespace

void register_scale_layout_kernels(Backend& backend) {
  backend.add<ops::ArrangeScalesKernel>("exact", &arrange_scales);
  backend.add<ops::RestoreScalesKernel>("exact", &restore_scales);
}

}  // namespace kitchen::reference
