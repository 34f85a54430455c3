#pragma once

#include "kitchen/base/backend.h"

namespace kitchen::reference {

/// Adds the kernels of ops/cross_entropy.h.
void register_cross_entropy_kernels(Backend& backend);

}  // namespace kitchen::reference
