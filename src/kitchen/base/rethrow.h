#pragma once

#include "kitchen/base/error.h"

#include <string>

namespace kitchen {

/// Throws a copy of `error`, of its dynamic type, with `suffix` at the end of its text.
[[noreturn]] void rethrow_with_suffix(const Error& error, const std::string& suffix);

}  // namespace kitchen
