#pragma once

#include "kitchen/base/backend.h"

namespace kitchen::reference {

/// Adds the kernels of ops/optimizer.h.
void register_optimizer_kernels(Backend& backend);

}  // namespace kitchen::reference
