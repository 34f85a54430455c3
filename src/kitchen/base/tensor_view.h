#pragma once

#include "kitchen/base/dtype.h"

#include <array>
#include <cstdint>

namespace kitchen {

inline constexpr int kMaxRank = 6;

/// What a kernel sees of a tensor: pointer, dtype, shape and strides (in elements). Owns nothing.
template <class Pointer>
struct BasicView {
  Pointer data = nullptr;
  DType dtype = DType::float32;
  int rank = 0;
  std::array<std::int64_t, kMaxRank> shape{};
  std::array<std::int64_t, kMaxRank> strides{};

  [[nodiscard]] std::int64_t numel() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= shape[static_cast<std::size_t>(i)];
    return n;
  }
  [[nodiscard]] bool defined() const { return rank > 0; }
};

using View = BasicView<void*>;

/// Read-only view; a View converts to it.
struct ConstView : BasicView<const void*> {
  ConstView() = default;
  ConstView(const View& view) {  // NOLINT(google-explicit-constructor): as T* to const T*
    data = view.data;
    dtype = view.dtype;
    rank = view.rank;
    shape = view.shape;
    strides = view.strides;
  }
};

}  // namespace kitchen
