#include "source_tree.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>

namespace kitchen::tools {
namespace {

namespace fs = std::filesystem;

bool is_identifier(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool is_left_out(const std::string& path) {
  return starts_with(path, "build") || path.find("tests/tools/fixtures") == 0;
}

/// Removes comments and the content of literals from C++ text, keeping its line breaks.
class CodeFilter {
 public:
  explicit CodeFilter(Literals literals) : literals_(literals) {}

  std::string line_of_code(const std::string& line) {
    std::string code;
    std::size_t i = 0;
    while (i < line.size()) {
      const std::size_t start = i;
      if (!raw_end_.empty()) {
        i = skip_until(line, i, raw_end_);
        keep_literal(line, start, i, code);
        if (i != std::string::npos) raw_end_.clear();
      } else if (in_block_) {
        i = skip_until(line, i, "*/");
        if (i != std::string::npos) in_block_ = false;
      } else if (line.compare(i, 2, "//") == 0) {
        break;
      } else if (line.compare(i, 2, "/*") == 0) {
        in_block_ = true;
        i += 2;
      } else if (line.compare(i, 2, "R\"") == 0 && (i == 0 || !is_identifier(line[i - 1]))) {
        const std::size_t open = line.find('(', i);
        raw_end_ = ")" + line.substr(i + 2, open - i - 2) + "\"";
        code += "\"\"";
        i = open + 1;
      } else if (line[i] == '"' || is_character_quote(line, i)) {
        code += std::string(2, line[i]);
        i = end_of_literal(line, i);
        keep_literal(line, start, i, code);
      } else {
        code += line[i++];
      }
      if (i == std::string::npos) break;
    }
    return code;
  }

 private:
  static std::size_t skip_until(const std::string& line, std::size_t from, const std::string& end) {
    const std::size_t found = line.find(end, from);
    return found == std::string::npos ? found : found + end.size();
  }

  // 1'000 is a number, not the start of a character literal.
  static bool is_character_quote(const std::string& line, std::size_t i) {
    return line[i] == '\'' && (i == 0 || !is_identifier(line[i - 1]));
  }

  static std::size_t end_of_literal(const std::string& line, std::size_t start) {
    for (std::size_t i = start + 1; i < line.size(); ++i) {
      if (line[i] == '\\') {
        ++i;
      } else if (line[i] == line[start]) {
        return i + 1;
      }
    }
    return line.size();
  }

  void keep_literal(const std::string& line, std::size_t start, std::size_t end,
                    std::string& code) const {
    if (literals_ == Literals::keep) code += line.substr(start, end - start);
  }

  Literals literals_;
  bool in_block_ = false;
  std::string raw_end_;
};

}  // namespace

std::vector<SourceFile> read_tree(const std::string& root, const std::string& folder,
                                  const std::vector<std::string>& extensions) {
  std::vector<SourceFile> files;
  const fs::path start = fs::path(root) / folder;
  if (!fs::is_directory(start)) return files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(start)) {
    const std::string path = entry.path().lexically_relative(root).generic_string();
    const std::string extension = entry.path().extension().string();
    const bool is_wanted =
        std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
    if (entry.is_regular_file() && is_wanted && !is_left_out(path)) {
      files.push_back(read_file(root, path));
    }
  }
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

SourceFile read_file(const std::string& root, const std::string& path) {
  std::ifstream in(fs::path(root) / path);
  if (!in) throw std::runtime_error((fs::path(root) / path).string() + ": cannot be read");
  SourceFile file{path, {}};
  for (std::string line; std::getline(in, line);) file.lines.push_back(line);
  return file;
}

bool exists(const std::string& root, const std::string& path) {
  return fs::exists(fs::path(root) / path);
}

bool starts_with(const std::string& text, const std::string& prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

bool ends_with(const std::string& text, const std::string& suffix) {
  return text.size() >= suffix.size() &&
         text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
}

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

bool contains_word(const std::string& line, const std::string& word) {
  for (std::size_t at = line.find(word); at != std::string::npos; at = line.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool starts = at == 0 || !is_identifier(line[at - 1]);
    const bool stops = end == line.size() || !is_identifier(line[end]);
    if (starts && stops) return true;
  }
  return false;
}

std::vector<std::string> code_only(const std::vector<std::string>& lines, Literals literals) {
  CodeFilter filter(literals);
  std::vector<std::string> code;
  code.reserve(lines.size());
  for (const std::string& line : lines) code.push_back(filter.line_of_code(line));
  return code;
}

void Findings::error(const std::string& path, std::size_t line, const std::string& message) {
  errors_.push_back(path + ":" + std::to_string(line) + ": " + message);
}

void Findings::warning(const std::string& path, std::size_t line, const std::string& message) {
  warnings_.push_back(path + ":" + std::to_string(line) + ": warning: " + message);
}

int Findings::report(const std::string& program, std::size_t files) const {
  for (const std::string& text : warnings_) std::cout << text << "\n";
  for (const std::string& text : errors_) std::cout << text << "\n";
  std::cout << program << ": " << files << " files, " << errors_.size() << " errors, "
            << warnings_.size() << " warnings\n";
  return errors_.empty() ? 0 : 1;
}

}  // namespace kitchen::tools
