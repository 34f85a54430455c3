#pragma once

#include <memory>
#include <string>

namespace kitchen {

/// Where a configuration value was written. Only for messages: equality of values ignores it.
struct SourceLocation {
  std::shared_ptr<const std::string> file;  ///< name of the file or other source; null if unknown
  int line = 0;                             ///< from 1; 0 if unknown

  [[nodiscard]] bool known() const { return file != nullptr && line > 0; }
};

/// "recipe.yaml, line 3"; empty if unknown.
std::string to_string(const SourceLocation& location);

/// " (recipe.yaml, line 3)" to put at the end of a message; empty if unknown.
std::string in_parentheses(const SourceLocation& location);

}  // namespace kitchen
