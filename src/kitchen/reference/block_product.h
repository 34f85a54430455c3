#pragma once

#include <cstdint>

namespace kitchen::reference {

/// Rows are worked on in groups of kTileRows, columns in groups of kTileCols: buffers are padded to
/// them.
inline constexpr std::int64_t kTileRows = 4;
inline constexpr std::int64_t kTileCols = 16;

constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// C[rows, cols] = A[rows, depth] · B[depth, cols], or += with `accumulate`, all fp32.
struct BlockProduct {
  std::int64_t rows;  ///< rounded up to kTileRows: rows of A and C up to there are touched
  std::int64_t cols;  ///< a multiple of kTileCols
  std::int64_t depth;
  const float* a;
  std::int64_t a_row_stride;  ///< 1 for a transposed A
  std::int64_t a_depth_stride;
  const float* b;
  std::int64_t b_stride;  ///< between rows; columns are adjacent
  float* c;
  std::int64_t c_stride;
  bool accumulate;
};

/// Each element is one chain of fused multiply-adds in ascending depth, so the result depends on
/// nothing but the operands. As fast as a BLAS on blocks that lie in the cache, without its
/// packing.
void multiply_blocks(const BlockProduct& product);

}  // namespace kitchen::reference
