/// @file   cuda/flash_attention/flash_attention_backward.cu
/// @brief  Probabilities come again from log-sum-exp: one kernel for dq by queries, one for dk and
/// dv by keys.
///
/// Idea     Each kernel owns the rows that it sums, so that no atomics are needed and a run gives
///          the same bits as the next; the price is that scores are made twice.
/// Picture  dq:     block = 32 queries, passes the keys:     dS = p·(dO·Vᵀ - delta),  dq += dS·K
///          dk, dv: block = 32 keys, passes heads, queries:  dv += pᵀ·dO,  dk += dSᵀ·Q
///          delta:  8 threads a row: Σ dO·O
/// Needs    Head size up to 256. Block = 256 threads, 4 tiles of fp32 in shared memory (129 KiB at
///          head size 256: not on compute capability 8.6 and 8.9).
/// Roofline 14·sq·sk·d FLOP in fp32 on the ordinary cores, half of it under a causal mask.
/// Expect   5 to 10 % of the fp32 peak, as the forward.
/// Measured see the contract run of tools/gpu_test (written by the run, never typed here)
/// Next     The tensor cores, scores made once.

#include "cuda/base/lanes.cuh"
#include "cuda/flash_attention/attention_tiles.cuh"
#include "cuda/flash_attention/flash_attention.h"

#include <cmath>

namespace kitchen::cuda {

namespace {

struct Backward {
  Tiles tiles;
  Mask mask;
  Exponent exponent;
  float scale;
  HeadRows dout, q, k, v, o, dq, dk, dv;
  const float* lse;  ///< [b, heads, sq]
  float* delta;      ///< [b, heads, sq]
  std::int64_t heads, group, queries, batches, d;
  DType dtype;

  __device__ std::int64_t row_of(std::int64_t batch, std::int64_t head, std::int64_t query) const {
    return (batch * heads + head) * queries + query;
  }
};

/// p and dS of one query and key, not rounded. A row without a finite score has lse -inf; +inf
/// makes its probabilities 0 instead of NaN.
struct Pair {
  float p, ds;
};

__device__ Pair gradients_of(const Backward& b, float product, float dp, std::int64_t row) {
  const float lse = b.lse[row];
  const float shift = lse == -INFINITY ? INFINITY : b.exponent.from_natural(lse);
  const float p = b.exponent.power(product * b.exponent.factor - shift);
  return {p, p * (dp - b.delta[row])};
}

template <int kWidth>
__device__ void store_row(const Backward& b, const HeadRows& to, std::int64_t row,
                          std::int64_t batch, std::int64_t head, int lane, float factor,
                          const float (&sums)[kWidth / kLanes]) {
  const Elements out{const_cast<void*>(to.data.data), b.dtype};
  const std::int64_t at = to.at(row, batch, head);
  for (int j = 0; j < kWidth / kLanes; ++j) {
    const int col = lane + kLanes * j;
    if (col < b.d) store_element(out, at + col, sums[j] * factor);
  }
}

__global__ void delta_kernel(const __grid_constant__ Backward b) {
  const std::int64_t index = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const bool is_there = index < b.batches * b.heads * b.queries;
  const std::int64_t row = is_there ? index : 0;  // the shuffles want all lanes
  const std::int64_t query = row % b.queries;
  const std::int64_t head = row / b.queries % b.heads;
  const std::int64_t batch = row / b.queries / b.heads;
  float sum = 0.0f;
  for (std::int64_t c = lane; c < b.d; c += kLanes) {
    sum += load_element(b.dout.data, b.dout.at(query, batch, head) + c) *
           load_element(b.o.data, b.o.at(query, batch, head) + c);
  }
  sum = sum_lanes(sum, kLanes);
  if (is_there && lane == 0) b.delta[row] = sum;
}

template <int kWidth>
__global__ void __launch_bounds__(kThreads) dq_kernel(const __grid_constant__ Backward b) {
  extern __shared__ float shared[];
  constexpr int kRows = kTileRows * (kWidth + 1);
  auto queries = reinterpret_cast<SharedRows<kWidth>>(shared);
  auto dout = reinterpret_cast<SharedRows<kWidth>>(shared + kRows);
  auto keys = reinterpret_cast<SharedRows<kWidth>>(shared + 2 * kRows);
  auto values = reinterpret_cast<SharedRows<kWidth>>(shared + 3 * kRows);
  __shared__ float ds_tile[kTileRows][kTileRows + 1];
  const Tile tile = b.tiles.at(blockIdx.x);
  const Segment& s = tile.segment;
  const std::int64_t head = blockIdx.y;
  const std::int64_t batch = blockIdx.z;
  const int row = static_cast<int>(threadIdx.x) / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const std::int64_t begin = s.q_begin + tile.first;
  load_rows<kWidth>(queries, b.q, begin, s.q_length - tile.first, batch, head, b.d);
  load_rows<kWidth>(dout, b.dout, begin, s.q_length - tile.first, batch, head, b.d);
  float dq[kWidth / kLanes] = {};  // (d / 8) columns of this thread
  const std::int64_t end = b.mask.end_key(s, tile.first);
  for (std::int64_t first = b.mask.first_key(s, tile.first); first < end; first += kTileRows) {
    __syncthreads();  // all threads have read the former tiles; the next loads overwrite them
    load_rows<kWidth>(keys, b.k, s.k_begin + first, end - first, batch, head / b.group, b.d);
    load_rows<kWidth>(values, b.v, s.k_begin + first, end - first, batch, head / b.group,
                      b.d);
    __syncthreads();  // the tiles are whole
    float scores[kScores];
    float dp[kScores];
    multiply_rows<kWidth>(queries, row, keys, lane, b.d, scores);
    multiply_rows<kWidth>(dout, row, values, lane, b.d, dp);
    for (int j = 0; j < kScores; ++j) {
      const int col = lane + kLanes * j;
      const bool is_visible = b.mask.shows(s, tile.first + row, first + col);
      ds_tile[row][col] = is_visible
                              ? round_to(b.dtype, gradients_of(b, scores[j], dp[j],
                                                               b.row_of(batch, head, begin + row))
                                                      .ds)
                              : 0.0f;
    }
    __syncwarp();  // a row of dS is written and read by the same 8 threads
    add_weighted_rows<kWidth>(ds_tile[row], keys, lane, dq);
  }
  if (tile.first + row >= s.q_length) return;
  store_row<kWidth>(b, b.dq, begin + row, batch, head, lane, b.scale, dq);
}

/// Adds what one tile of queries gives to a row of dk and dv.
template <int kWidth>
__device__ void add_queries(const Backward& b, const Tile& tile, std::int64_t first_query,
                            std::int64_t batch, std::int64_t head, SharedRows<kWidth> (&tiles)[4],
                            float (&p_row)[kTileRows + 1], float (&ds_row)[kTileRows + 1],
                            float (&dk)[kWidth / kLanes], float (&dv)[kWidth / kLanes]) {
  const auto [queries, dout, keys, values] = tiles;
  const Segment& s = tile.segment;
  const int row = static_cast<int>(threadIdx.x) / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const std::int64_t begin = s.q_begin + first_query;
  __syncthreads();  // all threads have read the former tiles; the next loads overwrite them
  load_rows<kWidth>(queries, b.q, begin, s.q_length - first_query, batch, head, b.d);
  load_rows<kWidth>(dout, b.dout, begin, s.q_length - first_query, batch, head, b.d);
  __syncthreads();  // the tiles are whole
  float scores[kScores];
  float dp[kScores];
  multiply_rows<kWidth>(keys, row, queries, lane, b.d, scores);
  multiply_rows<kWidth>(values, row, dout, lane, b.d, dp);
  for (int j = 0; j < kScores; ++j) {
    const int col = lane + kLanes * j;
    Pair pair{0.0f, 0.0f};
    if (b.mask.shows(s, first_query + col, tile.first + row)) {
      pair = gradients_of(b, scores[j], dp[j], b.row_of(batch, head, begin + col));
    }
    p_row[col] = round_to(b.dtype, pair.p);
    ds_row[col] = round_to(b.dtype, pair.ds);
  }
  __syncwarp();  // a row of p and dS is written and read by the same 8 threads
  add_weighted_rows<kWidth>(p_row, dout, lane, dv);
  add_weighted_rows<kWidth>(ds_row, queries, lane, dk);
}

template <int kWidth>
__global__ void __launch_bounds__(kThreads) dkdv_kernel(const __grid_constant__ Backward b) {
  extern __shared__ float shared[];
  constexpr int kRows = kTileRows * (kWidth + 1);
  SharedRows<kWidth> tiles[4];  // queries, dout, keys, values
  for (int i = 0; i < 4; ++i) tiles[i] = reinterpret_cast<SharedRows<kWidth>>(shared + i * kRows);
  __shared__ float p_tile[kTileRows][kTileRows + 1];   // (keys, queries)
  __shared__ float ds_tile[kTileRows][kTileRows + 1];  // (keys, queries)
  const Tile tile = b.tiles.at(blockIdx.x);
  const Segment& s = tile.segment;
  const std::int64_t key_head = blockIdx.y;
  const std::int64_t batch = blockIdx.z;
  const int row = static_cast<int>(threadIdx.x) / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const std::int64_t begin = s.k_begin + tile.first;
  load_rows<kWidth>(tiles[2], b.k, begin, s.k_length - tile.first, batch, key_head, b.d);
  load_rows<kWidth>(tiles[3], b.v, begin, s.k_length - tile.first, batch, key_head, b.d);
  float dk[kWidth / kLanes] = {};  // (d / 8) columns of this thread
  float dv[kWidth / kLanes] = {};  // (d / 8)
  const std::int64_t end = b.mask.end_query(s, tile.first);
  for (std::int64_t head = key_head * b.group; head < (key_head + 1) * b.group; ++head) {
    for (std::int64_t query = b.mask.first_query(s, tile.first); query < end; query += kTileRows) {
      add_queries<kWidth>(b, tile, query, batch, head, tiles, p_tile[row], ds_tile[row], dk, dv);
    }
  }
  if (tile.first + row >= s.k_length) return;
  store_row<kWidth>(b, b.dk, begin + row, batch, key_head, lane, b.scale, dk);
  store_row<kWidth>(b, b.dv, begin + row, batch, key_head, lane, 1.0f, dv);
}

template <class Kernel>
void launch(Kernel* kernel, const Stream& stream, Backward b, const TileList& tiles,
            std::int64_t heads, std::size_t shared_bytes) {
  if (tiles.count() == 0) return;
  b.tiles = tiles.tiles();
  const dim3 grid(tiles.count(), static_cast<unsigned>(heads), static_cast<unsigned>(b.batches));
  allow_shared_memory(kernel, shared_bytes);
  kernel<<<grid, kThreads, shared_bytes, native(stream)>>>(b);
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

}  // namespace

void flash_attention_backward(const Stream& stream, ConstView dout, ConstView q, ConstView k,
                              ConstView v, ConstView o, ConstView lse, View delta, View dq, View dk,
                              View dv, const ops::FlashAttentionOptions& options) {
  const std::int64_t heads = q.shape[2];
  const std::int64_t batches = q.shape[1];
  if (heads == 0 || batches == 0) return;
  const Backward b{{},
                   mask_of(options),
                   exponent_of(options),
                   options.scale,
                   head_rows(dout),
                   head_rows(q),
                   head_rows(k),
                   head_rows(v),
                   head_rows(o),
                   head_rows(dq),
                   head_rows(dk),
                   head_rows(dv),
                   static_cast<const float*>(lse.data),
                   static_cast<float*>(delta.data),
                   heads,
                   heads / k.shape[2],
                   q.shape[0],
                   batches,
                   q.shape[3],
                   q.dtype};
  if (delta.numel() > 0) {
    const auto blocks = static_cast<unsigned>(ceil_div(delta.numel() * kLanes, kThreads));
    delta_kernel<<<blocks, kThreads, 0, native(stream)>>>(b);
    KITCHEN_CUDA_CHECK(cudaGetLastError());
  }
  const TileList query_tiles(stream, q, k, options, TileList::Side::queries);
  const TileList key_tiles(stream, q, k, options, TileList::Side::keys);
  with_head_width(b.d, [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    constexpr std::size_t kBytes = 4 * shared_rows_bytes<kWidth>();
    launch(&dq_kernel<kWidth>, stream, b, query_tiles, heads, kBytes);
    launch(&dkdv_kernel<kWidth>, stream, b, key_tiles, k.shape[2], kBytes);
  });
}

}  // namespace kitchen::cuda
