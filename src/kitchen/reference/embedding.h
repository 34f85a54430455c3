#pragma once

#include "kitchen/base/backend.h"

namespace kitchen::reference {

/// Adds the kernels of ops/embedding.h.
void register_embedding_kernels(Backend& backend);

}  // namespace kitchen::reference
