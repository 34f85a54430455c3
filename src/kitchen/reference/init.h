#pragma once

#include "kitchen/base/backend.h"

namespace kitchen::reference {

/// Adds the kernels of ops/init.h.
void register_init_kernels(Backend& backend);

}  // namespace kitchen::reference
