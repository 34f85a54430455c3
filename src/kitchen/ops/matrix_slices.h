#pragma once

#include "kitchen/base/tensor_view.h"

namespace kitchen::ops {

/// Turns a view [leading..., rows, cols] into [slices, rows, cols].
/// @returns false, leaving the view alone, if the leading strides do not form one dimension.
template <class AnyView>
bool merge_slices(AnyView& view) {
  const auto last = static_cast<std::size_t>(view.rank - 1);
  std::int64_t slices = 1;
  std::int64_t stride = 0;
  for (std::size_t i = last - 1; i-- > 0;) {
    if (view.shape[i] == 1) continue;
    if (slices == 1) {
      stride = view.strides[i];
    } else if (view.strides[i] != stride * slices && view.numel() > 0) {
      return false;
    }
    slices *= view.shape[i];
  }
  view.rank = 3;
  view.shape = {slices, view.shape[last - 1], view.shape[last], 0, 0, 0};
  view.strides = {stride, view.strides[last - 1], view.strides[last], 0, 0, 0};
  return true;
}

}  // namespace kitchen::ops
