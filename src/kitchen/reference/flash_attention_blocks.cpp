#include "kitchen/reference/flash_attention_blocks.h"

#include <cmath>
#include <cstring>

namespace kitchen::reference {

std::vector<Segment> segments_of(const ConstView& q, const ConstView& k,
                                 const ops::FlashAttentionOptions& options) {
  if (options.cu_seqlens_q.empty()) return {{0, q.shape[0], 0, k.shape[0]}};
  std::vector<Segment> segments;
  for (std::size_t i = 0; i + 1 < options.cu_seqlens_q.size(); ++i) {
    const std::int64_t q_begin = options.cu_seqlens_q[i];
    const std::int64_t k_begin = options.cu_seqlens_k[i];
    segments.push_back({q_begin, options.cu_seqlens_q[i + 1] - q_begin, k_begin,
                        options.cu_seqlens_k[i + 1] - k_begin});
  }
  return segments;
}

Visibility::Visibility(const Segment& segment, const ops::FlashAttentionOptions& options)
    : num_keys_(segment.k_length), shift_(segment.k_length - segment.q_length) {
  const std::int64_t unlimited = segment.q_length + segment.k_length;
  const auto limited = [unlimited](std::int64_t size) {
    return size < 0 ? unlimited : std::min(size, unlimited);
  };
  left_ = limited(options.window.first);
  right_ = options.causal ? 0 : limited(options.window.second);
}

void transpose_block(const float* rows, std::int64_t count, std::int64_t width, std::int64_t d,
                     float* columns, std::int64_t column_stride) {
  constexpr std::int64_t kTile = 8;  // one cache line of reads for each group of writes
  for (std::int64_t first = 0; first < d; first += kTile) {
    const std::int64_t end = std::min(d, first + kTile);
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t c = first; c < end; ++c) {
        columns[c * column_stride + i] = rows[i * width + c];
      }
    }
  }
}

void zero_unused_rows(const View& out, std::int64_t first_unused) {
  const std::int64_t row_bytes = out.strides[0] * size_of(out.dtype);
  const std::int64_t count = out.shape[0] - first_unused;
  if (count <= 0 || row_bytes == 0) return;
  std::memset(element_at(out.data, out.dtype, first_unused * out.strides[0]), 0,
              static_cast<std::size_t>(count * row_bytes));
}

void fill_unused_lse(const View& lse, std::int64_t first_unused) {
  for (std::int64_t row = 0; row < lse.shape[0] * lse.shape[1]; ++row) {
    float* values = static_cast<float*>(lse.data) + row * lse.shape[2];
    std::fill(values + first_unused, values + lse.shape[2], -INFINITY);
  }
}

}  // namespace kitchen::reference
