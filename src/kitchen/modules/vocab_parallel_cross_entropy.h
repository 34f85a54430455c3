#pragma once

#include "kitchen/parallel/process_group.h"

#include <memory>

namespace kitchen {

/// Cross entropy per token, float32 [tokens], of logits [tokens, columns] that are split by columns
/// over a tensor-parallel group: rank r holds the ids from r·columns. Every rank gets all losses.
///
/// Forward reduces the largest logit over the ranks before anything is exponentiated, then the
/// sums; backward needs no communication and overwrites the logits with their gradient, so they
/// must not be used afterwards. Ids from `vocab_size` are padding of the table: they take no part.
///
/// @param labels [tokens] int64, the same on each rank; -100 counts for nothing.
/// @param group null: the default tensor-parallel group.
/// @throws ValueError if the columns of all ranks are fewer than `vocab_size`.
/// @source "Megatron-LM", arXiv:1909.08053, section 3.
Tensor vocab_parallel_cross_entropy(const Tensor& logits, const Tensor& labels,
                                    std::int64_t vocab_size,
                                    const std::shared_ptr<ProcessGroup>& group = nullptr);

}  // namespace kitchen
