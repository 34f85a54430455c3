#pragma once

#include "kitchen/base/math.h"
#include "kitchen/base/tensor_view.h"
#include "kitchen/ops/flash_attention_fp8.h"
#include "kitchen/reference/block_product.h"
#include "kitchen/reference/flash_attention_numerics.h"
#include "kitchen/reference/row_io.h"

#include <algorithm>
#include <cstdint>
#include <vector>

/// @file  flash_attention_blocks.h
/// @brief What the forward and the backward kernel share: sequences, visible keys, blocks of rows.

namespace kitchen::reference {

inline constexpr std::int64_t kKeyBlock = 64;
inline constexpr float kLog2E = 1.44269504f;
inline constexpr float kLn2 = 0.69314718f;

/// Multiply-adds below which a second thread would cost more than it saves.
inline constexpr double kParallelProducts = 3e5;

/// Multiply-adds of one product of scores, masks left aside.
inline double score_products(const ConstView& q, const ConstView& k) {
  return static_cast<double>(q.numel()) * static_cast<double>(k.shape[0]);
}

/// One sequence: tokens of dimension 0 that see nothing but each other.
struct Segment {
  std::int64_t q_begin;
  std::int64_t q_length;
  std::int64_t k_begin;
  std::int64_t k_length;
};

/// The packed sequences, or the whole of dimension 0.
std::vector<Segment> segments_of(const ConstView& q, const ConstView& k,
                                 const ops::FlashAttentionOptions& options);

/// Keys [first, end) of a segment that a query sees.
struct KeySpan {
  std::int64_t first;
  std::int64_t end;
};

/// The mask of a segment as spans; both ends never decrease from one query to the next.
class Visibility {
 public:
  Visibility(const Segment& segment, const ops::FlashAttentionOptions& options);

  [[nodiscard]] KeySpan keys_of(std::int64_t query) const {
    const std::int64_t diagonal = query + shift_;
    const std::int64_t end = std::clamp<std::int64_t>(diagonal + right_ + 1, 0, num_keys_);
    return {std::clamp<std::int64_t>(diagonal - left_, 0, end), end};
  }

 private:
  std::int64_t num_keys_;
  std::int64_t shift_;  ///< bottom-right alignment: the last query's diagonal is the last key
  std::int64_t left_;
  std::int64_t right_;
};

/// Rows of one batch index and head of a [s, b, heads, d] view, with the dtype's C++ struct.
template <class Io>
struct HeadRows {
  using Storage = typename Io::Storage;

  HeadRows(const ConstView& view, std::int64_t first, std::int64_t batch, std::int64_t head)
      : rows(static_cast<const Storage*>(view.data) + first * view.strides[0] +
             batch * view.strides[1] + head * view.strides[2]),
        stride(view.strides[0]) {}

  /// Rows [first, first + count) into out [count, width], columns from d on zero.
  void load(std::int64_t first, std::int64_t count, std::int64_t d, float* out,
            std::int64_t width) const {
    for (std::int64_t i = 0; i < count; ++i) {
      const Storage* from = rows + (first + i) * stride;
      float* to = out + i * width;
      for (std::int64_t c = 0; c < d; ++c) to[c] = Io::load(from[c]);
      for (std::int64_t c = d; c < width; ++c) to[c] = 0.0f;
    }
  }

  const Storage* rows;
  std::int64_t stride;
};

/// Row `row` of an output view of the same layout, each value times `factor` and rounded once.
template <class Io>
void store_head_row(const float* values, float factor, const View& out, std::int64_t row,
                    std::int64_t batch, std::int64_t head) {
  auto* to = static_cast<typename Io::Storage*>(out.data) + row * out.strides[0] +
             batch * out.strides[1] + head * out.strides[2];
  for (std::int64_t c = 0; c < out.shape[3]; ++c) to[c] = Io::store(values[c] * factor);
}

/// rows [count, width] -> columns [d, column_stride].
void transpose_block(const float* rows, std::int64_t count, std::int64_t width, std::int64_t d,
                     float* columns, std::int64_t column_stride);

/// What turns the products of q's and k's rows into the exponent of p.
template <bool kNaturalExp>
float score_factor(float q_factor, float k_factor, float scale) {
  const float natural = q_factor * k_factor * scale;
  return kNaturalExp ? natural : natural * kLog2E;
}

/// Zeros for the tokens past the last offset of a packed [s, 1, heads, d] output.
void zero_unused_rows(const View& out, std::int64_t first_unused);

/// -inf for the same tokens of lse [b, heads, s].
void fill_unused_lse(const View& lse, std::int64_t first_unused);

}  // namespace kitchen::reference
