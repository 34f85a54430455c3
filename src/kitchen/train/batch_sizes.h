#pragma once

#include <cstdint>

namespace kitchen::train {

/// Number of micro batches that each data-parallel rank adds up before an optimizer step.
///
/// All sizes count sequences. @throws ValueError with all three numbers and the nearest valid ones
/// unless `global_batch_size` is a positive multiple of `micro_batch_size` · `data_parallel_size`.
std::int64_t num_micro_batches(std::int64_t global_batch_size, std::int64_t micro_batch_size,
                               std::int64_t data_parallel_size);

}  // namespace kitchen::train
