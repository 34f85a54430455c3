#pragma once

#include "kitchen/base/backend.h"

namespace kitchen::reference {

/// Adds the CPU kernels of ops/activation.h.
void register_activation_kernels(Backend& backend);

}  // namespace kitchen::reference
