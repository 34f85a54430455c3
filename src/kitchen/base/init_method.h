#pragma once

#include "kitchen/base/tensor.h"

#include <functional>

namespace kitchen {

/// Fills a parameter in place. The parameter's ShardInfo tells its logical name, global shape and
/// offset, so that every split of a weight can start from equal values.
using InitMethod = std::function<void(Tensor&)>;

}  // namespace kitchen
