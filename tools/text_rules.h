#pragma once

#include "source_tree.h"

#include <string>

namespace kitchen::tools {

/// Rules for C++ and CUDA files: `#pragma once`, the four macros, no other preprocessor conditions,
/// ASCII outside comments and literals; a warning for files far over their budget.
void check_code(const SourceFile& file, Findings& findings);

/// Words that mark unfinished work, in any text file.
void check_forbidden_words(const SourceFile& file, Findings& findings);

/// Relative links of a Markdown page must lead to a file.
void check_links(const std::string& root, const SourceFile& page, Findings& findings);

/// Warns about the synonyms that docs/glossary.md lists behind "Not:".
class Glossary {
 public:
  /// An absent glossary warns about nothing.
  explicit Glossary(const std::string& root);
  void check(const SourceFile& file, Findings& findings) const;

 private:
  struct Synonym {
    std::string word;
    std::string term;
  };
  std::vector<Synonym> synonyms_;
};

}  // namespace kitchen::tools
