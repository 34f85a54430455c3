#pragma once

#include "kitchen/base/context.h"

namespace kitchen::reference {

/// The kernel table of the CPU: every op of the library has an entry.
std::shared_ptr<const Backend> cpu_backend();

/// A fresh CPU context with its own host allocator.
ContextPtr make_cpu_context();

}  // namespace kitchen::reference
