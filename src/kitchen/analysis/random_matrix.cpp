#include "kitchen/analysis/random_matrix.h"

#include "kitchen/base/rng.h"

#include <vector>

namespace kitchen::analysis {

Tensor random_matrix(const ContextPtr& context, std::int64_t rows, std::int64_t cols,
                     std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(rows * cols));
  std::uint64_t state = splitmix64(seed);
  for (float& value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = static_cast<float>(static_cast<std::int32_t>(state >> 32)) * 0x1p-31f;
  }
  return Tensor::from_vector(context, {rows, cols}, values);
}

}  // namespace kitchen::analysis
