/// @file   cuda/quantize/transpose_quantized.cu
/// @brief  Transposes bytes through a square tile in shared memory, and the scales element by
/// element.
///
/// Idea     Reads run along the rows of the source, writes along the rows of the result; the tile
/// turns between. Picture  32 rows x 32 columns ─> tile[32][33] ─> 32 columns x 32 rows; the odd
/// pitch keeps a column of the
///          tile in different banks
/// Needs    Nothing: edges are masked.
/// Roofline reads and writes 1 B an element. Memory-bound, and bound by single-byte accesses before
/// that. Expect   >= 20 % of the measured copy bandwidth. Measured see the contract run of
/// tools/gpu_test (written by the run, never typed here) Next     4 bytes a thread and byte
/// permutes.

#include "cuda/base/launch.h"
#include "cuda/quantize/quantize.h"

namespace kitchen::cuda {

namespace {

constexpr int kTile = 32;
constexpr int kTileThreadRows = 8;

__global__ void transpose_codes_kernel(const std::uint8_t* from, std::uint8_t* to,
                                       std::int64_t rows, std::int64_t cols,
                                       std::int64_t tiles_across, std::int64_t tiles) {
  __shared__ std::uint8_t tile[kTile][kTile + 1];
  const std::int64_t slice = static_cast<std::int64_t>(blockIdx.x) / tiles;
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) % tiles;
  const std::int64_t row = index / tiles_across * kTile;
  const std::int64_t col = index % tiles_across * kTile;
  from += slice * rows * cols;
  to += slice * rows * cols;
  for (int r = threadIdx.y; r < kTile; r += kTileThreadRows) {
    if (row + r < rows && col + threadIdx.x < cols) {
      tile[r][threadIdx.x] = from[(row + r) * cols + col + threadIdx.x];
    }
  }
  __syncthreads();
  for (int c = threadIdx.y; c < kTile; c += kTileThreadRows) {
    if (col + c < cols && row + threadIdx.x < rows) {
      to[(col + c) * rows + row + threadIdx.x] = tile[threadIdx.x][c];
    }
  }
}

/// to[r, c] = from[c · repeat, r / repeat]: 16 equal rows of stored scales become 16 equal columns'
/// one.
template <class Scale>
__global__ void transpose_scales_kernel(const Scale* from, Scale* to, std::int64_t from_rows,
                                        std::int64_t from_cols, std::int64_t to_rows,
                                        std::int64_t to_cols, std::int64_t repeat,
                                        std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const std::int64_t slice = i / (to_rows * to_cols);
  const std::int64_t r = i / to_cols % to_rows;
  const std::int64_t c = i % to_cols;
  to[i] = from[slice * from_rows * from_cols + c * repeat * from_cols + r / repeat];
}

template <class Scale>
void transpose_scales(const Stream& stream, const ConstView& from, const View& to,
                      std::int64_t repeat) {
  const std::int64_t count = to.numel();
  if (count == 0) return;
  transpose_scales_kernel<<<static_cast<unsigned>(ceil_div(count, kThreads)), kThreads, 0,
                            native(stream)>>>(
      static_cast<const Scale*>(from.data), static_cast<Scale*>(to.data), from.shape[1],
      from.shape[2], to.shape[1], to.shape[2], repeat, count);
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

}  // namespace

void transpose_quantized(const Stream& stream, const ops::QuantizedView& x, View codes,
                         View scale_inv) {
  const std::int64_t rows = x.codes.shape[1];
  const std::int64_t cols = x.codes.shape[2];
  if (codes.numel() > 0) {
    const std::int64_t across = ceil_div(cols, kTile);
    const std::int64_t tiles = across * ceil_div(rows, kTile);
    transpose_codes_kernel<<<static_cast<unsigned>(tiles * x.codes.shape[0]),
                             dim3(kTile, kTileThreadRows), 0, native(stream)>>>(
        static_cast<const std::uint8_t*>(x.codes.data), static_cast<std::uint8_t*>(codes.data),
        rows, cols, across, tiles);
    KITCHEN_CUDA_CHECK(cudaGetLastError());
  }
  const std::int64_t repeat = x.spec.rule == formats::ScaleRule::nvfp4 ? 16 : 1;
  if (x.spec.has_byte_scales()) {
    transpose_scales<std::uint8_t>(stream, x.scale_inv, scale_inv, repeat);
  } else {
    transpose_scales<float>(stream, x.scale_inv, scale_inv, repeat);
  }
}

}  // namespace kitchen::cuda
