#pragma once

#include "kitchen/base/tensor.h"

namespace kitchen::ops {

/// Kernel: out[t, :] = table[ids[t] - first_id, :]; a row of zeros where the id lies outside of the
/// table (rows of other ranks). ids [tokens] int64, table [rows, cols] with unit column stride, out
/// [tokens, cols] contiguous, in the table's dtype. Exact.
struct EmbeddingForwardKernel {
  static constexpr const char* kName = "embedding_forward";
  using Fn = void (*)(const Stream&, ConstView ids, ConstView table, std::int64_t first_id,
                      View out);
};

/// Kernel: dtable[ids[t] - first_id, :] += dy[t, :] in fp32, tokens ascending for each row. Ids
/// outside of the table add nothing. dy [tokens, cols] contiguous, dtable float32 with unit column
/// stride. Exact.
struct EmbeddingBackwardKernel {
  static constexpr const char* kName = "embedding_backward";
  using Fn = void (*)(const Stream&, ConstView dy, ConstView ids, std::int64_t first_id,
                      View dtable);
};

/// Rows of table [rows, cols] picked by ids [...] (int64) -> [..., cols]. Ids outside of
/// [first_id, first_id + rows) give rows of zeros.
/// @throws TypeError if ids are not int64; ValueError if the table is no matrix.
Tensor embedding_forward(const Tensor& ids, const Tensor& table, std::int64_t first_id = 0);

/// Adds dy [..., cols] to the rows of dtable [rows, cols], float32, that ids [...] name.
/// @throws ValueError naming the shapes if they do not fit; TypeError on other dtypes.
void embedding_backward_into(const Tensor& dy, const Tensor& ids, const Tensor& dtable,
                             std::int64_t first_id = 0);

}  // namespace kitchen::ops
