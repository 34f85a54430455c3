#pragma once

#include "kitchen/base/backend.h"

namespace kitchen::reference {

/// Adds the CPU kernels of ops/norm.h.
void register_norm_kernels(Backend& backend);

}  // namespace kitchen::reference
