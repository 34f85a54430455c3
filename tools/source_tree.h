#pragma once

#include <string>
#include <vector>

/// @file  source_tree.h
/// @brief Reading the source tree and reporting findings, for the checkers in this folder.
///
/// The checkers need the standard library only, so that they also run where nothing else builds.

namespace kitchen::tools {

/// A text file: its path relative to the root of the tree, with '/' as separator, and its lines.
struct SourceFile {
  std::string path;
  std::vector<std::string> lines;
};

/// Reads every file below `root`/`folder` whose extension is in `extensions` (".h"), sorted by
/// path. A folder that does not exist gives no files. Build folders and checker fixtures are left
/// out.
/// @throws std::runtime_error naming the file if one cannot be read.
std::vector<SourceFile> read_tree(const std::string& root, const std::string& folder,
                                  const std::vector<std::string>& extensions);

/// Reads one file. @throws std::runtime_error naming it if it cannot be read.
SourceFile read_file(const std::string& root, const std::string& path);

/// True if `root`/`path` exists.
bool exists(const std::string& root, const std::string& path);

bool starts_with(const std::string& text, const std::string& prefix);
bool ends_with(const std::string& text, const std::string& suffix);

/// Text without blanks at either end.
std::string trimmed(const std::string& text);

/// True if `word` occurs in `line` with no identifier character on either side.
bool contains_word(const std::string& line, const std::string& word);

/// Whether code_only keeps what stands in string and character literals.
enum class Literals { keep, empty };

/// The lines of a C++ file without their comments.
std::vector<std::string> code_only(const std::vector<std::string>& lines, Literals literals);

/// Collects "path:line: message" lines and prints them.
class Findings {
 public:
  /// A violation: the program exits with 1.
  void error(const std::string& path, std::size_t line, const std::string& message);
  /// Worth a look; does not change the exit code.
  void warning(const std::string& path, std::size_t line, const std::string& message);
  /// Prints all findings and a summary that begins with `program`. @returns the exit code, 0 or 1.
  int report(const std::string& program, std::size_t files) const;

 private:
  std::vector<std::string> errors_;
  std::vector<std::string> warnings_;
};

}  // namespace kitchen::tools
