#pragma once

#include "kitchen/base/backend.h"

namespace kitchen::reference {

/// Adds the kernels of ops/elementwise.h.
void register_elementwise_kernels(Backend& backend);

/// Adds the reductions among them; called by register_elementwise_kernels.
void register_reduction_kernels(Backend& backend);

}  // namespace kitchen::reference
