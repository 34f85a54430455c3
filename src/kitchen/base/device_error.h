#pragma once

#include "kitchen/base/error.h"

namespace kitchen {

/// The asked device is absent or cannot be used.
struct DeviceError : RuntimeError {
  using RuntimeError::RuntimeError;
};

}  // namespace kitchen
