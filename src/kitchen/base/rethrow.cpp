#include "kitchen/base/rethrow.h"

#include <exception>

namespace kitchen {

void rethrow_with_suffix(const Error& error, const std::string& suffix) {
  error.rethrow_with_suffix(suffix);
  // A devirtualized call loses [[noreturn]], so the compiler wants to see how this function ends.
  std::terminate();
}

}  // namespace kitchen
