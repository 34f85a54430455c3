#pragma once

#include "kitchen/base/backend.h"

namespace kitchen::reference {

/// Adds every CPU kernel to `backend`: explicit, one line a kernel, no static initialisers.
void register_reference_kernels(Backend& backend);

}  // namespace kitchen::reference
