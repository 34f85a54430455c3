#pragma once

#include <stdexcept>
#include <string>

namespace kitchen {

/// Base of every exception that this library throws.
///
/// `what()` tells the subject, what was found, what was expected and a way out. The classes are named
/// after the Python exceptions that the documented API raises.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;

  /// Throws an exception of the same dynamic type whose text is `what() + suffix`.
  [[noreturn]] virtual void rethrow_with_suffix(const std::string& suffix) const;
};

/// Missing or unexpected dictionary keys.
struct KeyError : Error {
  using Error::Error;
  [[noreturn]] void rethrow_with_suffix(const std::string& suffix) const override;
};

/// Right type, unsupported value.
struct ValueError : Error {
  using Error::Error;
  [[noreturn]] void rethrow_with_suffix(const std::string& suffix) const override;
};

/// Wrong type, unknown or missing keyword argument.
struct TypeError : Error {
  using Error::Error;
  [[noreturn]] void rethrow_with_suffix(const std::string& suffix) const override;
};

/// Known feature that is out of scope, or that no kernel of the backend implements.
struct NotImplementedError : Error {
  using Error::Error;
  [[noreturn]] void rethrow_with_suffix(const std::string& suffix) const override;
};

/// Violated precondition. A real exception in all build types.
struct AssertionError : Error {
  using Error::Error;
  [[noreturn]] void rethrow_with_suffix(const std::string& suffix) const override;
};

/// Failure while working: RNG tracker, collectives, checkpoint format, memory.
struct RuntimeError : Error {
  using Error::Error;
  [[noreturn]] void rethrow_with_suffix(const std::string& suffix) const override;
};

/// Unreadable or unwritable file.
struct IOError : Error {
  using Error::Error;
  [[noreturn]] void rethrow_with_suffix(const std::string& suffix) const override;
};

}  // namespace kitchen
