#include "text_rules.h"

#include <filesystem>
#include <set>
#include <sstream>

namespace kitchen::tools {
namespace {

const std::string kGlossary = "docs/glossary.md";

bool is_header(const std::string& path) {
  return ends_with(path, ".h") || ends_with(path, ".cuh");
}

bool is_library(const std::string& path) {
  return starts_with(path, "src/") || starts_with(path, "cuda/");
}

void check_pragma_once(const SourceFile& file, Findings& findings) {
  if (!is_header(file.path)) return;
  for (const std::string& line : file.lines) {
    if (trimmed(line) == "#pragma once") return;
  }
  findings.error(file.path, 1, "a header needs #pragma once");
}

void check_preprocessor(const SourceFile& file, std::size_t line, const std::string& code,
                        Findings& findings) {
  static const std::set<std::string> macros = {"KITCHEN_CUDA_CHECK", "KITCHEN_NCCL_CHECK",
                                               "KITCHEN_MPI_CHECK", "KITCHEN_HOST_DEVICE"};
  const std::string text = trimmed(code);
  if (starts_with(text, "#define")) {
    const std::string rest = trimmed(text.substr(7));
    const std::string name = rest.substr(0, rest.find_first_of(" ("));
    if (macros.count(name) == 0) {
      findings.error(
          file.path, line,
          "macro '" + name + "': the code base has four; use constexpr, inline or a template");
    }
  }
  const bool may_ask =
      file.path == "src/kitchen/base/host_device.h" || starts_with(file.path, "cuda/arch/");
  if (starts_with(text, "#if") && !may_ask) {
    findings.error(
        file.path, line,
        "#if outside base/host_device.h and cuda/arch/: CMake chooses whole files instead");
  }
}

void check_ascii(const SourceFile& file, std::size_t line, const std::string& code,
                 Findings& findings) {
  for (const char c : code) {
    if ((static_cast<unsigned char>(c) & 0x80U) == 0) continue;
    findings.error(file.path, line, "non-ASCII character outside comments and literals");
    return;
  }
}

void check_budget(const SourceFile& file, Findings& findings) {
  const std::size_t budget = starts_with(file.path, "cuda/") ? 250
                             : is_header(file.path)          ? 150
                                                             : 300;
  if (file.lines.size() > budget + budget / 2) {
    findings.warning(file.path, file.lines.size(),
                     "far over the budget of " + std::to_string(budget) + " lines");
  }
}

/// Calls `visit(line number, link target)` for each `](target)` outside code blocks.
template <class Visit>
void for_each_link(const SourceFile& page, const Visit& visit) {
  bool in_code = false;
  for (std::size_t i = 0; i < page.lines.size(); ++i) {
    const std::string& line = page.lines[i];
    if (starts_with(trimmed(line), "```")) in_code = !in_code;
    if (in_code) continue;
    for (std::size_t at = line.find("]("); at != std::string::npos; at = line.find("](", at + 1)) {
      const std::size_t end = line.find(')', at);
      if (end != std::string::npos) visit(i + 1, line.substr(at + 2, end - at - 2));
    }
  }
}

/// Words in backticks on a line.
std::vector<std::string> quoted_words(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream parts(line);
  std::string part;
  for (bool is_inside = false; std::getline(parts, part, '`'); is_inside = !is_inside) {
    if (is_inside) words.push_back(part);
  }
  return words;
}

}  // namespace

void check_code(const SourceFile& file, Findings& findings) {
  check_pragma_once(file, findings);
  check_budget(file, findings);
  if (!is_library(file.path)) return;
  const std::vector<std::string> code = code_only(file.lines, Literals::keep);
  const std::vector<std::string> names = code_only(file.lines, Literals::empty);
  for (std::size_t i = 0; i < code.size(); ++i) {
    check_preprocessor(file, i + 1, code[i], findings);
    check_ascii(file, i + 1, names[i], findings);
  }
}

void check_forbidden_words(const SourceFile& file, Findings& findings) {
  // Joined here, so that this file passes its own check.
  static const std::string first_parts[] = {"TO", "FIX", "X", "HA", "for "};
  static const std::string second_parts[] = {"DO", "ME", "XX", "CK", "now"};
  std::vector<std::string> words;
  for (std::size_t i = 0; i < 5; ++i) words.push_back(first_parts[i] + second_parts[i]);
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    for (const std::string& word : words) {
      if (contains_word(file.lines[i], word)) {
        findings.error(file.path, i + 1,
                       "'" + word +
                           "' marks unfinished work: finish it, or throw "
                           "NotImplementedError and say so");
      }
    }
  }
}

void check_links(const std::string& root, const SourceFile& page, Findings& findings) {
  namespace fs = std::filesystem;
  for_each_link(page, [&](std::size_t line, const std::string& link) {
    const std::string target = link.substr(0, link.find('#'));
    if (target.empty() || target.find(':') != std::string::npos) return;
    if (!fs::exists(fs::path(root) / fs::path(page.path).parent_path() / target)) {
      findings.error(page.path, line, "the link to '" + target + "' leads nowhere");
    }
  });
}

Glossary::Glossary(const std::string& root) {
  if (!exists(root, kGlossary)) return;
  std::string term;
  for (const std::string& line : read_file(root, kGlossary).lines) {
    if (starts_with(line, "### ")) term = line.substr(4);
    if (!starts_with(line, "Not:")) continue;
    for (const std::string& word : quoted_words(line)) synonyms_.push_back({word, term});
  }
}

void Glossary::check(const SourceFile& file, Findings& findings) const {
  if (file.path == kGlossary) return;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    for (const Synonym& synonym : synonyms_) {
      if (!contains_word(file.lines[i], synonym.word)) continue;
      findings.warning(
          file.path, i + 1,
          "'" + synonym.word + "' is called '" + synonym.term + "' in docs/glossary.md");
    }
  }
}

}  // namespace kitchen::tools
