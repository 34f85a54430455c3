#include "bibliography.h"

#include <algorithm>
#include <stdexcept>

namespace kitchen::tools {
namespace {

const std::string kBibliography = "docs/bibliography.bib";

/// The text of `  name = {value},`, without the braces that keep a name in one piece.
std::string field_value(const std::string& line) {
  const std::size_t open = line.find('{');
  const std::size_t close = line.rfind('}');
  if (open == std::string::npos || close <= open) return "";
  std::string value = line.substr(open + 1, close - open - 1);
  value.erase(
      std::remove_if(value.begin(), value.end(), [](char c) { return c == '{' || c == '}'; }),
      value.end());
  return value;
}

void read_field(const std::string& line, Source& source) {
  const std::string name = trimmed(line.substr(0, line.find('=')));
  if (name == "title") source.title = field_value(line);
  if (name == "author") source.author = field_value(line);
  if (name == "year") source.year = field_value(line);
  if (name == "eprint") source.eprint = field_value(line);
}

}  // namespace

std::vector<Source> read_bibliography(const std::string& root) {
  std::vector<Source> sources;
  if (!exists(root, kBibliography)) return sources;
  for (const std::string& line : read_file(root, kBibliography).lines) {
    if (starts_with(line, "@")) {
      const std::size_t open = line.find('{') + 1;
      sources.push_back({line.substr(open, line.find(',') - open), "", "", "", ""});
    } else if (!sources.empty()) {
      read_field(line, sources.back());
    }
  }
  for (const Source& s : sources) {
    if (s.title.empty() || s.author.empty() || s.year.empty()) {
      throw std::runtime_error(kBibliography + ": " + s.key + " needs title, author and year");
    }
  }
  return sources;
}

void check_citations(const SourceFile& file, const std::vector<Source>& sources,
                     Findings& findings) {
  const std::string prefix = "arXiv:";
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    for (std::size_t at = line.find(prefix); at != std::string::npos;
         at = line.find(prefix, at + 1)) {
      const std::string number = line.substr(at + prefix.size(), 10);  // 2307.08691
      if (number.find_first_not_of("0123456789.") != std::string::npos) continue;
      const bool is_known = std::any_of(sources.begin(), sources.end(),
                                        [&](const Source& s) { return s.eprint == number; });
      if (!is_known) {
        findings.error(file.path, i + 1, prefix + number + " is not in " + kBibliography);
      }
    }
  }
}

}  // namespace kitchen::tools
