#pragma once

#include "kitchen/base/backend.h"

namespace kitchen::reference {

/// Adds the CPU kernels of ops/softmax.h.
void register_softmax_kernels(Backend& backend);

}  // namespace kitchen::reference
