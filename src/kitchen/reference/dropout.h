#pragma once

#include "kitchen/base/backend.h"

namespace kitchen::reference {

/// Adds the kernels of ops/dropout.h.
void register_dropout_kernels(Backend& backend);

}  // namespace kitchen::reference
