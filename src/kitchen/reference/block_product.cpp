#include "kitchen/reference/block_product.h"

#include <cmath>

namespace kitchen::reference {

namespace {

/// One tile of C, held in registers over the whole depth.
void multiply_tile(const BlockProduct& product, const float* a, const float* b, float* c) {
  float sums[kTileRows][kTileCols];
  for (std::int64_t row = 0; row < kTileRows; ++row) {
    for (std::int64_t col = 0; col < kTileCols; ++col) {
      sums[row][col] = product.accumulate ? c[row * product.c_stride + col] : 0.0f;
    }
  }
  const std::int64_t row_stride = product.a_row_stride;
  for (std::int64_t k = 0; k < product.depth; ++k) {
    const float* a_column = a + k * product.a_depth_stride;
    const float* b_row = b + k * product.b_stride;
#pragma GCC unroll 4
    for (std::int64_t row = 0; row < kTileRows; ++row) {
      const float factor = a_column[row * row_stride];
#pragma omp simd
      for (std::int64_t col = 0; col < kTileCols; ++col) {
        sums[row][col] = fmaf(factor, b_row[col], sums[row][col]);
      }
    }
  }
  for (std::int64_t row = 0; row < kTileRows; ++row) {
    for (std::int64_t col = 0; col < kTileCols; ++col) {
      c[row * product.c_stride + col] = sums[row][col];
    }
  }
}

}  // namespace

void multiply_blocks(const BlockProduct& product) {
  for (std::int64_t col = 0; col < product.cols; col += kTileCols) {
    for (std::int64_t row = 0; row < product.rows; row += kTileRows) {
      multiply_tile(product, product.a + row * product.a_row_stride, product.b + col,
                    product.c + row * product.c_stride + col);
    }
  }
}

}  // namespace kitchen::reference
