#include "kitchen/app/device.h"

#include "kitchen/backends/available_backends.h"
#include "kitchen/base/device_error.h"
#include "kitchen/reference/cpu_backend.h"

namespace kitchen::app {

namespace {

ContextPtr make_cuda_context() {
  for (const AvailableBackend& available : available_backends()) {
    if (available.name != "cuda") continue;
    const std::string reason = available.why_unusable();
    if (reason.empty()) return available.make_context(0);
    throw DeviceError("--backend cuda: " + reason + "; use --backend cpu");
  }
  throw DeviceError("--backend cuda: this build has no CUDA kernels; use --backend cpu");
}

}  // namespace

ContextPtr make_context(const std::string& backend, std::int64_t num_threads) {
  if (backend == "cuda") return make_cuda_context();
  if (num_threads > 0) reference::set_num_threads(static_cast<int>(num_threads));
  return reference::make_cpu_context();
}

}  // namespace kitchen::app
