#pragma once

#include "kitchen/base/tensor.h"

#include <cstdint>

namespace kitchen::analysis {

/// A float32 [rows, cols] of values in [-1, 1) without repeating patterns that a predictor could
/// learn: what benchmarks work on.
Tensor random_matrix(const ContextPtr& context, std::int64_t rows, std::int64_t cols,
                     std::uint64_t seed);

}  // namespace kitchen::analysis
