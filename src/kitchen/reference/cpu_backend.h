#pragma once

#include "kitchen/base/context.h"

namespace kitchen::reference {

/// The kernel table of the CPU: every op of the library has an entry.
std::shared_ptr<const Backend> cpu_backend();

/// A fresh CPU context with its own host allocator.
ContextPtr make_cpu_context();

/// Threads that CPU kernels use from now on, process-wide. Results do not depend on it.
void set_num_threads(int num_threads);

}  // namespace kitchen::reference
