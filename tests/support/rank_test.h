#pragma once

#include "kitchen/autograd/node.h"
#include "kitchen/base/context.h"
#include "kitchen/base/rank_state.h"
#include "kitchen/parallel/rng_tracker.h"
#include "support/values.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

/// @file  rank_test.h
/// @brief A rank of its own for each test, so that tests share neither generators nor names.

namespace kitchen::testing {

/// A single rank with a poisoned CPU context as its default one and a seeded RNG tracker.
class RankTest : public ::testing::Test {
 protected:
  RankTest() : scope_(std::make_shared<RankState>()), context(poisoned_context()) {
    set_default_context(context);
    model_parallel_cuda_manual_seed(1234);
  }

  /// Multiples of 1/256 in [-1/2, 1/2): exact in every high-precision dtype.
  [[nodiscard]] static std::vector<double> small_values(std::int64_t count, std::uint64_t seed) {
    std::vector<double> values = grid_values(count, seed);
    for (double& value : values) value /= 8.0;
    return values;
  }
  [[nodiscard]] Tensor tensor(const Shape& shape, std::uint64_t seed,
                              DType dtype = DType::float32) const {
    return tensor_of(context, shape, dtype, small_values(num_elements(shape), seed));
  }
  /// As tensor, wanting a gradient.
  [[nodiscard]] Tensor leaf(const Shape& shape, std::uint64_t seed,
                            DType dtype = DType::float32) const {
    Tensor made = tensor(shape, seed, dtype);
    autograd::set_requires_grad(made);
    return made;
  }

 private:
  RankScope scope_;

 protected:
  ContextPtr context;
};

}  // namespace kitchen::testing
