#pragma once

#include "kitchen/reference/parallel.h"

#include <cstdint>

/// @file  gemm_tiles.h
/// @brief How a product is cut before it goes to the BLAS.
///
/// The BLAS sums in another order when it spreads a product over threads itself, so each of its
/// calls gets a tile of a size that depends on the shape alone, and runs inside of a parallel
/// region, where it stays on its thread.

namespace kitchen::reference {

inline constexpr std::int64_t kTile = 512;
/// Below this many multiplications a tile is not cut further, below the second one no thread is
/// woken. The second is also the most that OpenBLAS keeps on one thread outside of a parallel
/// region.
inline constexpr std::int64_t kTileWork = std::int64_t{1} << 22;
inline constexpr std::int64_t kSerialWork = std::int64_t{1} << 18;

/// Numbers of tiles along the rows and columns of the output.
struct GemmTiles {
  std::int64_t m = 1;
  std::int64_t n = 1;
};

inline GemmTiles gemm_tiles(std::int64_t m, std::int64_t n, std::int64_t k) {
  GemmTiles tiles{ceil_div(m, kTile), ceil_div(n, kTile)};
  if (tiles.m * tiles.n == 1 && m * n * k > kTileWork) (n >= m ? tiles.n : tiles.m) = 2;
  return tiles;
}

}  // namespace kitchen::reference
