#include "kitchen/app/device.h"

#include "kitchen/base/device_error.h"
#include "kitchen/reference/cpu_backend.h"

namespace kitchen::app {

ContextPtr make_context(const std::string& backend, std::int64_t num_threads) {
  if (backend == "cuda") {
    throw DeviceError("--backend cuda: this build has no CUDA kernels; use --backend cpu");
  }
  if (num_threads > 0) reference::set_num_threads(static_cast<int>(num_threads));
  return reference::make_cpu_context();
}

}  // namespace kitchen::app
