#include "kitchen/reference/cpu_backend.h"

#include "kitchen/reference/register_kernels.h"

#include <omp.h>

namespace kitchen::reference {

std::shared_ptr<const Backend> cpu_backend() {
  static const std::shared_ptr<const Backend> backend = [] {
    auto table = std::make_shared<Backend>("cpu");
    register_reference_kernels(*table);
    return table;
  }();
  return backend;
}

ContextPtr make_cpu_context() {
  return std::make_shared<Context>(Device::cpu(), cpu_backend(), std::make_shared<HostAllocator>());
}

void set_num_threads(int num_threads) { omp_set_num_threads(num_threads); }

}  // namespace kitchen::reference
