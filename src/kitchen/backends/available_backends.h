#pragma once

#include "kitchen/base/context.h"

#include <memory>
#include <string>
#include <vector>

namespace kitchen {

/// A device library that this build links.
struct AvailableBackend {
  std::string name;               ///< "cpu", "cuda"
  std::string (*why_unusable)();  ///< why no context can be made here; empty if one can
  std::string (*describe)();      ///< the device in one line; call it if the backend is usable
  ContextPtr (*make_context)(int index);  ///< @throws DeviceError if the device is not usable
  std::shared_ptr<const Backend> (*kernels)();  ///< the kernel table; needs no device
};

/// The device libraries of this build, "cpu" first. The build writes this function's body, so that
/// programs and tests need not ask how they were built; link kitchen_backends.
std::vector<AvailableBackend> available_backends();

}  // namespace kitchen
