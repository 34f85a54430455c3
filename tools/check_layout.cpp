/// @file  check_layout.cpp
/// @brief Checks that every documented name has its file and its doc comments, and the text rules.
///
/// Usage: check_layout [root]       exit 0: clean, 1: violations (file:line: message), 2: wrong
/// usage
///
/// The documented names are data, docs/reference/documented_symbols.txt; its head explains the
/// format.

#include "bibliography.h"
#include "class_members.h"
#include "documented_symbols.h"
#include "source_tree.h"
#include "text_rules.h"

#include <cctype>
#include <exception>
#include <iostream>
#include <sstream>
#include <stdexcept>

namespace kitchen::tools {
namespace {

/// KitchenLayerNormLinear -> kitchen_layer_norm_linear, QLinearParams -> q_linear_params.
std::string snake_case(const std::string& name) {
  std::string text;
  for (const char c : name) {
    const bool is_upper = std::isupper(static_cast<unsigned char>(c)) != 0;
    if (is_upper && !text.empty()) text += '_';
    text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

void check_class(const SourceFile& file, const DocumentedSymbol& symbol, Findings& findings) {
  const std::optional<ClassDefinition> found = find_class(file, symbol.name);
  if (!found) {
    findings.error(file.path, 1,
                   "does not define " + symbol.name + ", the class it is named after");
    return;
  }
  if (!found->self.is_documented) {
    findings.error(file.path, found->self.line,
                   symbol.name + " has no doc comment (///) before it");
  }
  for (const Declaration& function : found->public_functions) {
    if (function.is_documented) continue;
    findings.error(file.path, function.line,
                   "public member function " + symbol.name + "::" + function.name +
                       " has no doc comment (///)");
  }
  for (const std::string& member : symbol.members) {
    if (contains_word(found->body, member)) continue;
    findings.error(file.path, found->self.line,
                   symbol.name + " lacks its documented member " + member);
  }
}

void check_symbol(const std::string& root, const DocumentedSymbol& symbol, Findings& findings) {
  const std::string path = "src/kitchen/" + symbol.header;
  const std::string file_name = path.substr(path.rfind('/') + 1);
  if (symbol.kind == "class" && file_name != snake_case(symbol.name) + ".h") {
    findings.error(kSymbols, symbol.line,
                   symbol.name + " belongs in a file named " + snake_case(symbol.name) +
                       ".h, not " + file_name);
  }
  if (!exists(root, path)) {
    if (!symbol.is_planned) {
      findings.error(kSymbols, symbol.line, symbol.name + ": " + path + " is missing");
    }
    return;
  }
  if (symbol.is_planned) {
    findings.warning(kSymbols, symbol.line, symbol.name + " exists: mark it 'required'");
  }
  const SourceFile file = read_file(root, path);
  if (symbol.kind == "class") {
    check_class(file, symbol, findings);
    return;
  }
  const std::optional<Declaration> found = find_symbol(file, symbol.name);
  if (!found) {
    findings.error(path, 1, "does not declare " + symbol.name);
  } else if (!found->is_documented) {
    findings.error(path, found->line, symbol.name + " has no doc comment (///) before it");
  }
}

int run(const std::string& root) {
  Findings findings;
  const Glossary glossary(root);
  const std::vector<Source> sources = read_bibliography(root);
  for (const DocumentedSymbol& symbol : read_symbols(root)) check_symbol(root, symbol, findings);
  std::size_t count = 0;
  for (const char* folder : {"src", "cuda", "tools", "tests", "tutorials"}) {
    for (const SourceFile& file : read_tree(root, folder, {".h", ".cpp", ".cu", ".cuh"})) {
      check_code(file, findings);
      check_forbidden_words(file, findings);
      check_citations(file, sources, findings);
      glossary.check(file, findings);
      ++count;
    }
  }
  for (const char* folder : {"cmake", "recipes", "src", "tests", "tools"}) {
    for (const SourceFile& file : read_tree(root, folder, {"", ".txt", ".cmake", ".yaml"})) {
      check_forbidden_words(file, findings);
      ++count;
    }
  }
  std::vector<SourceFile> pages = read_tree(root, "docs", {".md"});
  for (SourceFile& page : read_tree(root, "tutorials", {".md"})) pages.push_back(std::move(page));
  for (const char* path : {"README.md", "CONTRIBUTING.md"}) {
    if (exists(root, path)) pages.push_back(read_file(root, path));
  }
  for (const SourceFile& page : pages) {
    check_forbidden_words(page, findings);
    check_links(root, page, findings);
    check_citations(page, sources, findings);
    glossary.check(page, findings);
  }
  return findings.report("check_layout", count + pages.size());
}

}  // namespace
}  // namespace kitchen::tools

int main(int argc, char** argv) {
  if (argc > 2) {
    std::cerr << "usage: check_layout [root of the source tree]\n";
    return 2;
  }
  try {
    return kitchen::tools::run(argc == 2 ? argv[1] : ".");
  } catch (const std::exception& error) {
    std::cerr << "check_layout: " << error.what() << "\n";
    return 2;
  }
}
