#include "kitchen/base/error.h"

namespace kitchen {

namespace {

/// One body for all classes: only the type that is thrown differs.
template <class E>
[[noreturn]] void rethrow_as(const E& error, const std::string& suffix) {
  throw E(std::string(error.what()) + suffix);
}

}  // namespace

void Error::rethrow_with_suffix(const std::string& suffix) const { rethrow_as(*this, suffix); }
void KeyError::rethrow_with_suffix(const std::string& suffix) const { rethrow_as(*this, suffix); }
void ValueError::rethrow_with_suffix(const std::string& suffix) const { rethrow_as(*this, suffix); }
void TypeError::rethrow_with_suffix(const std::string& suffix) const { rethrow_as(*this, suffix); }
void NotImplementedError::rethrow_with_suffix(const std::string& suffix) const {
  rethrow_as(*this, suffix);
}
void AssertionError::rethrow_with_suffix(const std::string& suffix) const {
  rethrow_as(*this, suffix);
}
void RuntimeError::rethrow_with_suffix(const std::string& suffix) const {
  rethrow_as(*this, suffix);
}
void IOError::rethrow_with_suffix(const std::string& suffix) const { rethrow_as(*this, suffix); }

}  // namespace kitchen
