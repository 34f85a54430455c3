#pragma once

#include "kitchen/base/error.h"

namespace kitchen::train {

/// An intact checkpoint of a format version that this program does not read. It is no damage, so
/// the search for a loadable checkpoint stops instead of falling back to an older one.
struct UnknownVersionError : RuntimeError {
  using RuntimeError::RuntimeError;
};

}  // namespace kitchen::train
