#include "kitchen/config/source_location.h"

namespace kitchen {

std::string to_string(const SourceLocation& location) {
  if (!location.known()) return {};
  return *location.file + ", line " + std::to_string(location.line);
}

std::string in_parentheses(const SourceLocation& location) {
  if (!location.known()) return {};
  return " (" + to_string(location) + ")";
}

}  // namespace kitchen
