#pragma once

#include "kitchen/base/context.h"

#include <string>

namespace kitchen::app {

/// The context for --backend auto, cpu or cuda. `num_threads` 0 takes all cores.
/// @throws DeviceError if the asked device is not usable.
ContextPtr make_context(const std::string& backend, std::int64_t num_threads);

}  // namespace kitchen::app
