/// @file   cuda/flash_attention/flash_attention_forward.cu
/// @brief  A block carries 32 queries of one head past the keys with a running maximum and sum.
///
/// Idea     The scores of a tile live in registers and shared memory only: when a larger maximum
///          appears, sum and output so far are scaled down, so that no row of scores is ever whole.
/// Picture  Q tile (32, d) stays;  for each K, V tile (32, d):
///          S = Q·Kᵀ ─> m, p = e^(S - m) ─> O = O·e^(m' - m) + p·V
///          8 threads share a query: 4 scores and d/8 outputs each
/// Needs    Head size up to 256. Block = 256 threads, 3 tiles of fp32 in shared memory (97 KiB at
///          head size 256).
/// Roofline 4·sq·sk·d FLOP in fp32 on the ordinary cores, half of it under a causal mask.
/// Expect   5 to 10 % of the fp32 peak: 1.25 shared-memory reads a multiply-add.
/// Measured see the contract run of tools/gpu_test (written by the run, never typed here)
/// Next     The tensor cores, with scores kept in the registers of their mma tiles.

#include "cuda/flash_attention/attention_tiles.cuh"
#include "cuda/flash_attention/flash_attention.h"

#include <cmath>

namespace kitchen::cuda {

namespace {

struct Forward {
  Tiles tiles;
  Mask mask;
  Exponent exponent;
  HeadRows q, k, v, o;
  float* lse;  ///< [b, heads, sq]
  std::int64_t group, queries, d;
  DType dtype;
};

/// Largest value, or sum, of the 8 threads of a row.
__device__ float row_maximum(float value) {
  for (int step = kLanes / 2; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(0xFFFFFFFFu, value, step);
    value = other > value ? other : value;
  }
  return value;
}

__device__ float row_sum(float value) {
  for (int step = kLanes / 2; step > 0; step /= 2) {
    value += __shfl_xor_sync(0xFFFFFFFFu, value, step);
  }
  return value;
}

/// What a row has seen so far.
struct Running {
  float maximum = -INFINITY;
  float shift = 0.0f;  ///< the maximum, or 0 before the first finite score
  float sum = 0.0f;

  /// Scores of this thread become p, rounded for the product with V; returns what scales the
  /// former output.
  __device__ float take(float (&scores)[kScores], const Exponent& exponent, DType dtype) {
    float largest = maximum;
    for (int j = 0; j < kScores; ++j) largest = scores[j] > largest ? scores[j] : largest;
    maximum = row_maximum(largest);
    const float former = shift;
    shift = maximum == -INFINITY ? 0.0f : maximum;
    const float correction = exponent.power(former - shift);
    float tile_sum = 0.0f;
    for (int j = 0; j < kScores; ++j) {
      const float p = exponent.power(scores[j] - shift);
      tile_sum += p;
      scores[j] = round_to(dtype, p);
    }
    sum = sum * correction + row_sum(tile_sum);
    return correction;
  }
};

template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    flash_attention_forward_kernel(const __grid_constant__ Forward f) {
  extern __shared__ float shared[];
  constexpr int kRows = kTileRows * (kWidth + 1);
  auto queries = reinterpret_cast<SharedRows<kWidth>>(shared);
  auto keys = reinterpret_cast<SharedRows<kWidth>>(shared + kRows);
  auto values = reinterpret_cast<SharedRows<kWidth>>(shared + 2 * kRows);
  __shared__ float p_tile[kTileRows][kTileRows + 1];
  const Tile tile = f.tiles.at(blockIdx.x);
  const Segment& s = tile.segment;
  const std::int64_t head = blockIdx.y;
  const std::int64_t batch = blockIdx.z;
  const int row = static_cast<int>(threadIdx.x) / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  load_rows<kWidth>(queries, f.q, s.q_begin + tile.first, s.q_length - tile.first, batch, head,
                    f.d);
  Running running;
  float output[kWidth / kLanes] = {};  // (d / 8) columns of this thread
  const std::int64_t end = f.mask.end_key(s, tile.first);
  for (std::int64_t first = f.mask.first_key(s, tile.first); first < end; first += kTileRows) {
    __syncthreads();  // all threads have read the former tiles; the next loads overwrite them
    load_rows<kWidth>(keys, f.k, s.k_begin + first, end - first, batch, head / f.group, f.d);
    load_rows<kWidth>(values, f.v, s.k_begin + first, end - first, batch, head / f.group,
                      f.d);
    __syncthreads();  // the tiles are whole
    float scores[kScores];
    multiply_rows<kWidth>(queries, row, keys, lane, f.d, scores);
    for (int j = 0; j < kScores; ++j) {
      const bool is_visible = f.mask.shows(s, tile.first + row, first + lane + kLanes * j);
      scores[j] = is_visible ? scores[j] * f.exponent.factor : -INFINITY;
    }
    const float correction = running.take(scores, f.exponent, f.dtype);
    for (int j = 0; j < kScores; ++j) p_tile[row][lane + kLanes * j] = scores[j];
    for (int j = 0; j < kWidth / kLanes; ++j) output[j] *= correction;
    __syncwarp();  // a row of p is written and read by the same 8 threads
    add_weighted_rows<kWidth>(p_tile[row], values, lane, output);
  }
  const std::int64_t query = tile.first + row;
  if (query >= s.q_length) return;
  const Elements out{const_cast<void*>(f.o.data.data), f.dtype};
  const std::int64_t at = f.o.at(s.q_begin + query, batch, head);
  for (int j = 0; j < kWidth / kLanes; ++j) {
    const int col = lane + kLanes * j;
    // Without a visible key not the accumulator: it may hold 0 · NaN of keys of the tile.
    const float value = running.sum == 0.0f ? 0.0f : output[j] / running.sum;
    if (col < f.d) store_element(out, at + col, value);
  }
  if (lane > 0) return;
  float* lse = f.lse + (batch * gridDim.y + head) * f.queries + s.q_begin + query;
  *lse = running.sum == 0.0f
             ? -INFINITY
             : f.exponent.to_natural(running.maximum) + log_exact(running.sum);
}

}  // namespace

void flash_attention_forward(const Stream& stream, ConstView q, ConstView k, ConstView v, View o,
                             View lse, const ops::FlashAttentionOptions& options) {
  if (o.numel() == 0) return;
  const TileList tiles(stream, q, k, options, TileList::Side::queries);
  const Forward f{tiles.tiles(),
                  mask_of(options),
                  exponent_of(options),
                  head_rows(q),
                  head_rows(k),
                  head_rows(v),
                  head_rows(o),
                  static_cast<float*>(lse.data),
                  q.shape[2] / k.shape[2],
                  q.shape[0],
                  q.shape[3],
                  q.dtype};
  const dim3 grid(tiles.count(), static_cast<unsigned>(q.shape[2]),
                  static_cast<unsigned>(q.shape[1]));
  with_head_width(f.d, [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    constexpr std::size_t kBytes = 3 * shared_rows_bytes<kWidth>();
    allow_shared_memory(&flash_attention_forward_kernel<kWidth>, kBytes);
    flash_attention_forward_kernel<kWidth><<<grid, kThreads, kBytes, native(stream)>>>(f);
  });
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

}  // namespace kitchen::cuda
