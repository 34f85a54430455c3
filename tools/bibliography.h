#pragma once

#include "source_tree.h"

#include <string>
#include <vector>

namespace kitchen::tools {

/// One entry of docs/bibliography.bib.
struct Source {
  std::string key;
  std::string title;
  std::string author;
  std::string year;
  std::string eprint;  ///< its number on arXiv; empty if it is not there
};

/// The entries of docs/bibliography.bib below `root`; none if there is no such file.
/// @throws std::runtime_error naming an entry without title, author or year.
std::vector<Source> read_bibliography(const std::string& root);

/// An error for each "arXiv:<number>" in `file` that is the eprint of no source.
void check_citations(const SourceFile& file, const std::vector<Source>& sources,
                     Findings& findings);

}  // namespace kitchen::tools
