#pragma once

#include "kitchen/base/backend.h"

namespace kitchen::reference {

/// Adds ArrangeScalesKernel and RestoreScalesKernel.
void register_scale_layout_kernels(Backend& backend);

}  // namespace kitchen::reference
