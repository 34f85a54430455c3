#pragma once

#include <string>
#include <vector>

/// @file  documented_symbols.h
/// @brief The list of documented names, docs/reference/documented_symbols.txt; its head explains
/// the format.

namespace kitchen::tools {

inline const std::string kSymbols = "docs/reference/documented_symbols.txt";

struct DocumentedSymbol {
  std::string kind;  ///< class, function or constant
  std::string name;
  std::string header;  ///< below src/kitchen
  bool is_planned = false;
  std::vector<std::string> members;
  std::size_t line = 0;
};

/// @throws std::runtime_error naming the line that does not follow the format.
std::vector<DocumentedSymbol> read_symbols(const std::string& root);

}  // namespace kitchen::tools
