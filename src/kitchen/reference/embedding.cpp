#include "kitchen/reference/embedding.h"

#include "kitchen/ops/embedding.h"
#include "kitchen/reference/parallel.h"
#include "kitchen/reference/row_io.h"

#include <cstring>

namespace kitchen::reference {

namespace {

constexpr std::int64_t kColumnBlock = 128;  ///< columns of the gradient that one thread adds up

/// Row of the table for token t, or -1 if the id lies outside.
std::int64_t table_row(const ConstView& ids, std::int64_t t, std::int64_t first_id,
                       std::int64_t rows) {
  const std::int64_t row = static_cast<const std::int64_t*>(ids.data)[t] - first_id;
  return row >= 0 && row < rows ? row : -1;
}

void embedding_forward(const Stream& /*stream*/, ConstView ids, ConstView table,
                       std::int64_t first_id, View out) {
  const std::int64_t cols = out.shape[1];
  parallel_rows(out.shape[0], cols, [&](std::int64_t t) {
    const std::int64_t row = table_row(ids, t, first_id, table.shape[0]);
    const std::int64_t bytes = cols * size_of(out.dtype);
    void* target = element_at(out.data, out.dtype, t * cols);
    if (row < 0) {
      std::memset(target, 0, static_cast<std::size_t>(bytes));
    } else {
      std::memcpy(target, element_at(table.data, table.dtype, row * table.strides[0]),
                  static_cast<std::size_t>(bytes));
    }
  });
}

void embedding_backward(const Stream& /*stream*/, ConstView dy, ConstView ids,
                        std::int64_t first_id, View dtable) {
  const std::int64_t tokens = dy.shape[0];
  const std::int64_t cols = dy.shape[1];
  auto* gradients = static_cast<float*>(dtable.data);
  // Threads split the columns: each table row then sees its tokens in ascending order.
  parallel_rows(ceil_div(cols, kColumnBlock), kColumnBlock * tokens, [&](std::int64_t block) {
    const std::int64_t begin = block * kColumnBlock;
    const std::int64_t count = std::min(kColumnBlock, cols - begin);
    float row[kColumnBlock];
    for (std::int64_t t = 0; t < tokens; ++t) {
      const std::int64_t target = table_row(ids, t, first_id, dtable.shape[0]);
      if (target < 0) continue;
      load_row(dy.data, dy.dtype, t * cols + begin, 1, count, row);
      float* sums = gradients + target * dtable.strides[0] + begin;
      for (std::int64_t c = 0; c < count; ++c) sums[c] += row[c];
    }
  });
}

}  // namespace

void register_embedding_kernels(Backend& backend) {
  backend.add<ops::EmbeddingForwardKernel>("exact", &embedding_forward);
  backend.add<ops::EmbeddingBackwardKernel>("exact", &embedding_backward);
}

}  // namespace kitchen::reference
