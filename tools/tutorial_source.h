#pragma once

#include <string>
#include <vector>

/// @file  tutorial_source.h
/// @brief Reads a tutorial's folder: the head and the two halves of its README.md, and its program.

namespace kitchen::tools {

/// One folder of tutorials/. The head of README.md is a list of "- Key: value" lines below its
/// title.
struct Tutorial {
  std::string name;   ///< folder, "03_scaling_granularity"
  std::string title;  ///< "Scaling granularity"
  std::string goal;
  std::string minutes;
  std::vector<std::string> builds_on;   ///< folders, or empty
  std::vector<std::string> introduces;  ///< ideas that are new here
  std::vector<std::string> needs;       ///< ideas that an earlier tutorial introduced
  std::vector<std::string> library;     ///< files that the page is about, from the root of the tree
  std::vector<std::string> introduction;
  std::vector<std::string> exercises;  ///< README.md after the line "<!-- program -->"
  std::vector<std::string> program;    ///< lines of main.cpp

  [[nodiscard]] std::string number() const { return name.substr(0, 2); }
};

/// @throws std::runtime_error naming file and key if a part is missing.
Tutorial read_tutorial(const std::string& root, const std::string& name);

/// All folders NN_name below `root`/tutorials, sorted.
std::vector<Tutorial> read_tutorials(const std::string& root);

/// "## 2. Title" -> "Title" of a line of prose "// ## 2. Title"; empty for other lines.
std::string stage_heading(const std::string& line);

}  // namespace kitchen::tools
