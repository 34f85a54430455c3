#pragma once

#include "kitchen/base/backend.h"

namespace kitchen::reference {

/// Adds the kernels of ops/delayed_scaling.h.
void register_delayed_scaling_kernels(Backend& backend);

}  // namespace kitchen::reference
