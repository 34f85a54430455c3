#pragma once

#include "kitchen/base/init_method.h"
#include "kitchen/modules/parameter.h"

#include <string>

namespace kitchen {

/// Draws from normal(0, std) by global element index: the key is made of the run's seed and the tensor's
/// logical name (ShardInfo), so that every split of a weight starts equal.
InitMethod init_method_normal(double std);

/// Sets all elements to `value`.
InitMethod init_method_constant(float value);

/// Where a parameter lies in the whole tensor: split `tp_size` times along `partition_dim`, -1 = whole.
struct ParameterLayout {
  std::string logical_name;  ///< path of the parameter, equal on all ranks
  int partition_dim = -1;
  std::int64_t partition_rank = 0;
  std::int64_t partition_size = 1;
  std::int64_t partition_stride = 1;  ///< 2: the local rows are [gate; up], each split on its own
};

/// Allocates a parameter of local `shape`, tells it its place, and runs `init` on it (zeros if null).
Parameter make_parameter(const ContextPtr& context, const Shape& shape, DType dtype,
                         const ParameterLayout& layout, const InitMethod& init);

}  // namespace kitchen
