#pragma once

#include "kitchen/base/backend.h"

namespace kitchen::reference {

/// Adds the CPU kernel of ops/rotary.h.
void register_rotary_kernels(Backend& backend);

}  // namespace kitchen::reference
