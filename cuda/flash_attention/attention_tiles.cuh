#pragma once

#include "kitchen/base/error.h"
#include "kitchen/base/math.h"
#include "kitchen/ops/flash_attention.h"

#include "cuda/base/element_io.cuh"
#include "cuda/base/stream_scratch.h"

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

/// @file  attention_tiles.cuh
/// @brief What the flash attention kernels share: masks as spans, tiles of rows in shared memory,
/// scores.
///
/// A block works on tiles of kTileRows queries and as many keys. Eight neighbouring threads share a
/// row; thread `lane` of them owns the columns lane, lane + 8, ... of the row.

namespace kitchen::cuda {

inline constexpr int kTileRows = 32;
inline constexpr int kLanes = kThreads / kTileRows;   ///< threads of a row
inline constexpr int kScores = kTileRows / kLanes;    ///< scores of a thread
inline constexpr float kLog2E = 1.44269504f;
inline constexpr float kLn2 = 0.69314718f;
static_assert(kLanes == 8, "row_maximum and row_sum shuffle over 8 lanes");

/// One sequence: tokens of dimension 0 that see nothing but each other.
struct Segment {
  std::int64_t q_begin, q_length;
  std::int64_t k_begin, k_length;
};

/// The tile of a block: rows [first, first + kTileRows) of the segment's queries or keys.
struct Tile {
  Segment segment;
  std::int64_t first;
};

/// The tiles of one head: those of a list, or of a single segment that needs none.
struct Tiles {
  const Tile* list;  ///< or null
  Segment whole;

  __device__ Tile at(std::int64_t index) const {
    return list != nullptr ? list[index] : Tile{whole, index * kTileRows};
  }
};

/// The mask: key j is visible to query i if i + shift - left <= j <= i + shift + right.
struct Mask {
  std::int64_t left, right;

  __device__ static std::int64_t shift(const Segment& s) { return s.k_length - s.q_length; }

  __device__ bool shows(const Segment& s, std::int64_t query, std::int64_t key) const {
    const std::int64_t diagonal = query + shift(s);
    return query < s.q_length && key < s.k_length && key >= diagonal - left &&
           key <= diagonal + right;
  }
  /// Keys that some query of [first, first + kTileRows) sees lie in [first_key, end_key).
  __device__ std::int64_t first_key(const Segment& s, std::int64_t first) const {
    return max(std::int64_t{0}, first + shift(s) - left);
  }
  __device__ std::int64_t end_key(const Segment& s, std::int64_t first) const {
    const std::int64_t last = min(first + kTileRows, s.q_length) - 1;
    return min(s.k_length, last + shift(s) + right + 1);
  }
  /// Queries that see some key of [first, first + kTileRows) lie in [first_query, end_query).
  __device__ std::int64_t first_query(const Segment& s, std::int64_t first) const {
    return max(std::int64_t{0}, first - shift(s) - right);
  }
  __device__ std::int64_t end_query(const Segment& s, std::int64_t first) const {
    const std::int64_t last = min(first + kTileRows, s.k_length) - 1;
    return min(s.q_length, last - shift(s) + left + 1);
  }
};

/// A [s, b, heads, d] view with unit stride in d.
struct HeadRows {
  ConstElements data;
  std::int64_t strides[3];

  __device__ std::int64_t at(std::int64_t row, std::int64_t batch, std::int64_t head) const {
    return row * strides[0] + batch * strides[1] + head * strides[2];
  }
};

inline HeadRows head_rows(const ConstView& view) {
  return {elements_of(view), {view.strides[0], view.strides[1], view.strides[2]}};
}

/// A tile of rows in shared memory. The odd stride lets 8 rows be read at once without conflicts.
template <int kWidth>
using SharedRows = float (*)[kWidth + 1];  // (kTileRows, kWidth + 1)

template <int kWidth>
constexpr std::size_t shared_rows_bytes() {
  return sizeof(float) * kTileRows * (kWidth + 1);
}

/// Rows [first, first + count) of one head, 0 beyond them and beyond column d.
template <int kWidth>
__device__ void load_rows(SharedRows<kWidth> to, const HeadRows& from, std::int64_t first,
                          std::int64_t count, std::int64_t batch, std::int64_t head,
                          std::int64_t d) {
  for (int i = static_cast<int>(threadIdx.x); i < kTileRows * kWidth; i += kThreads) {
    const int row = i / kWidth;
    const int col = i % kWidth;
    const bool is_there = row < count && col < d;
    to[row][col] =
        is_there ? load_element(from.data, from.at(first + row, batch, head) + col) : 0.0f;
  }
}

/// Products of row `row` of `a` with the rows lane, lane + 8, ... of `b`.
template <int kWidth>
__device__ void multiply_rows(SharedRows<kWidth> a, int row, SharedRows<kWidth> b, int lane,
                              std::int64_t d, float (&products)[kScores]) {
  for (int j = 0; j < kScores; ++j) products[j] = 0.0f;
  for (int c = 0; c < d; ++c) {
    const float value = a[row][c];
    for (int j = 0; j < kScores; ++j) {
      products[j] = fmaf(value, b[lane + kLanes * j][c], products[j]);
    }
  }
}

/// sums[j] += Σ_i weights[i]·rows[i][lane + 8·j] over a tile.
template <int kWidth>
__device__ void add_weighted_rows(const float* weights, SharedRows<kWidth> rows, int lane,
                                  float (&sums)[kWidth / kLanes]) {
  for (int i = 0; i < kTileRows; ++i) {
    const float weight = weights[i];
#pragma unroll
    for (int j = 0; j < kWidth / kLanes; ++j) {
      sums[j] = fmaf(weight, rows[i][lane + kLanes * j], sums[j]);
    }
  }
}

/// How scores become exponents of p.
struct Exponent {
  float factor;  ///< of q·k
  bool is_natural;

  __device__ float power(float x) const { return is_natural ? exp_exact(x) : exp2_exact(x); }
  /// A natural logarithm in the exponent's base, and back.
  __device__ float from_natural(float x) const { return is_natural ? x : x * kLog2E; }
  __device__ float to_natural(float x) const { return is_natural ? x : x * kLn2; }
};

inline Exponent exponent_of(const ops::FlashAttentionOptions& options) {
  return {options.natural_exp ? options.scale : options.scale * kLog2E, options.natural_exp};
}

Mask mask_of(const ops::FlashAttentionOptions& options);

/// The tiles of queries or of keys of one head, on the device where there are several sequences.
class TileList {
 public:
  enum class Side { queries, keys };

  /// Tokens past the last offset form sequences that see nothing: queries without keys, and keys
  /// without queries.
  TileList(const Stream& stream, const ConstView& q, const ConstView& k,
           const ops::FlashAttentionOptions& options, Side side);

  [[nodiscard]] Tiles tiles() const { return {memory_.as<Tile>(), whole_}; }
  [[nodiscard]] unsigned count() const { return count_; }

 private:
  TileList(const Stream& stream, const std::vector<Tile>& list, const Segment& whole, Side side);

  Segment whole_;
  StreamScratch memory_;
  unsigned count_;
};

/// Lets `kernel` use `bytes` of shared memory, more than the 48 KiB that need no permission.
template <class Kernel>
void allow_shared_memory(Kernel* kernel, std::size_t bytes) {
  KITCHEN_CUDA_CHECK(cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
}

/// Calls body(std::integral_constant) with the width that holds head size d.
/// @throws NotImplementedError above 256.
template <class Body>
void with_head_width(std::int64_t d, Body&& body) {
  if (d <= 64) return body(std::integral_constant<int, 64>{});
  if (d <= 128) return body(std::integral_constant<int, 128>{});
  if (d <= 256) return body(std::integral_constant<int, 256>{});
  throw NotImplementedError("flash_attention: head size " + std::to_string(d) +
                            "; the CUDA kernels take up to 256");
}

}  // namespace kitchen::cuda
