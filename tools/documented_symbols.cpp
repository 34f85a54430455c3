#include "documented_symbols.h"

#include "source_tree.h"

#include <sstream>
#include <stdexcept>

namespace kitchen::tools {

std::vector<DocumentedSymbol> read_symbols(const std::string& root) {
  std::vector<DocumentedSymbol> symbols;
  const SourceFile file = read_file(root, kSymbols);
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    if (trimmed(file.lines[i]).empty() || file.lines[i].front() == '#') continue;
    std::istringstream words(file.lines[i]);
    DocumentedSymbol symbol;
    std::string status;
    words >> symbol.kind >> symbol.name >> symbol.header >> status;
    const bool is_kind_known =
        symbol.kind == "class" || symbol.kind == "function" || symbol.kind == "constant";
    if (!is_kind_known || (status != "required" && status != "planned")) {
      throw std::runtime_error(kSymbols + ":" + std::to_string(i + 1) +
                               ": expected 'class|function|constant name header required|planned "
                               "members...', found '" +
                               file.lines[i] + "'");
    }
    symbol.is_planned = status == "planned";
    symbol.line = i + 1;
    for (std::string member; words >> member;) symbol.members.push_back(member);
    symbols.push_back(std::move(symbol));
  }
  return symbols;
}

}  // namespace kitchen::tools
