#pragma once

#include <cstdint>

namespace kitchen::formats {

/// Shape of the block that shares one scale; 0 stands for the whole extent. Blocks at the edge are
/// smaller.
struct ScaleGranularity {
  std::int64_t rows = 0;
  std::int64_t cols = 0;

  [[nodiscard]] bool is_per_tensor() const { return rows == 0 && cols == 0; }
};

inline bool operator==(const ScaleGranularity& a, const ScaleGranularity& b) {
  return a.rows == b.rows && a.cols == b.cols;
}

inline bool operator!=(const ScaleGranularity& a, const ScaleGranularity& b) {
  return !(a == b);
}

inline constexpr ScaleGranularity kPerTensor{0, 0};
inline constexpr ScaleGranularity kPerRow{1, 0};
inline constexpr ScaleGranularity kPerColumn{0, 1};
inline constexpr ScaleGranularity kBlock1x128{1, 128};
inline constexpr ScaleGranularity kBlock128x1{128, 1};
inline constexpr ScaleGranularity kBlock128x128{128, 128};
inline constexpr ScaleGranularity kBlock1x32{1, 32};
inline constexpr ScaleGranularity kBlock32x1{32, 1};
inline constexpr ScaleGranularity kBlock32x32{32, 32};
inline constexpr ScaleGranularity kBlock1x16{1, 16};
inline constexpr ScaleGranularity kBlock16x16{16, 16};

}  // namespace kitchen::formats
