#pragma once

#include "kitchen/base/error.h"

#include <optional>
#include <string>
#include <utility>

namespace kitchen {

/// A keyword argument without a default.
template <class T>
class Required {
 public:
  Required() = default;
  Required(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor): a = b

  [[nodiscard]] bool is_set() const { return value_.has_value(); }

  /// The value. @throws TypeError "missing required keyword argument '<keyword>'" naming the class.
  [[nodiscard]] const T& get(const char* class_name, const char* keyword) const {
    if (!value_) {
      throw TypeError(std::string(class_name) + ": missing required keyword argument '" + keyword +
                      "'");
    }
    return *value_;
  }

 private:
  std::optional<T> value_;
};

}  // namespace kitchen
