#pragma once

#include "source_tree.h"

#include <optional>
#include <string>
#include <vector>

namespace kitchen::tools {

/// A declaration found in a header.
struct Declaration {
  std::string name;
  std::size_t line = 0;  // counted from 1
  bool is_documented = false;
};

/// The definition of a class, struct or enum, and its public member functions.
struct ClassDefinition {
  Declaration self;
  std::vector<Declaration> public_functions;  // without deleted and defaulted ones and destructors
  std::string body;                           // code between the braces, comments removed
};

/// Finds the definition of `name` in a header, or nothing. It is no C++ parser: it counts braces
/// and parentheses, which is enough for headers in the style of this project.
std::optional<ClassDefinition> find_class(const SourceFile& file, const std::string& name);

/// Finds the declaration of a function or constant `name` at namespace scope, or nothing.
std::optional<Declaration> find_symbol(const SourceFile& file, const std::string& name);

}  // namespace kitchen::tools
