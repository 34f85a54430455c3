#include "tutorial_source.h"

#include "source_tree.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <sstream>
#include <stdexcept>

namespace kitchen::tools {
namespace {

const std::string kProgramMark = "<!-- program -->";

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> items;
  std::istringstream stream(text);
  for (std::string item; std::getline(stream, item, ',');) {
    item = trimmed(item);
    if (!item.empty() && item != "none") items.push_back(item);
  }
  return items;
}

/// The value of the head's line "- key: value".
std::string head_value(const SourceFile& readme, const std::string& key) {
  const std::string start = "- " + key + ": ";
  for (const std::string& line : readme.lines) {
    if (starts_with(line, start)) return trimmed(line.substr(start.size()));
    if (line == kProgramMark) break;
  }
  throw std::runtime_error(readme.path + ": the head has no line '" + start + "...'");
}

void split_text(const SourceFile& readme, Tutorial& tutorial) {
  const auto mark = std::find(readme.lines.begin(), readme.lines.end(), kProgramMark);
  if (mark == readme.lines.end()) {
    throw std::runtime_error(readme.path + ": no line '" + kProgramMark +
                             "' between introduction and exercises");
  }
  for (auto line = readme.lines.begin() + 1; line != mark; ++line) {
    if (!starts_with(*line, "- ") || !tutorial.introduction.empty()) {
      if (!tutorial.introduction.empty() || !line->empty()) tutorial.introduction.push_back(*line);
    }
  }
  tutorial.exercises.assign(mark + 1, readme.lines.end());
}

bool is_tutorial_name(const std::string& name) {
  return name.size() > 3 && std::isdigit(static_cast<unsigned char>(name[0])) != 0 &&
         std::isdigit(static_cast<unsigned char>(name[1])) != 0 && name[2] == '_';
}

}  // namespace

Tutorial read_tutorial(const std::string& root, const std::string& name) {
  const SourceFile readme = read_file(root, "tutorials/" + name + "/README.md");
  if (readme.lines.empty() || !starts_with(readme.lines[0], "# ")) {
    throw std::runtime_error(readme.path + ": the first line is no title '# ...'");
  }
  Tutorial tutorial;
  tutorial.name = name;
  tutorial.title = readme.lines[0].substr(2);
  tutorial.goal = head_value(readme, "Goal");
  tutorial.minutes = head_value(readme, "Minutes");
  tutorial.builds_on = split_list(head_value(readme, "Builds on"));
  tutorial.introduces = split_list(head_value(readme, "New"));
  tutorial.needs = split_list(head_value(readme, "Needs"));
  tutorial.library = split_list(head_value(readme, "Library"));
  split_text(readme, tutorial);
  tutorial.program = read_file(root, "tutorials/" + name + "/main.cpp").lines;
  return tutorial;
}

std::vector<Tutorial> read_tutorials(const std::string& root) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/tutorials")) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() && is_tutorial_name(name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  std::vector<Tutorial> tutorials;
  for (const std::string& name : names) tutorials.push_back(read_tutorial(root, name));
  return tutorials;
}

std::string stage_heading(const std::string& line) {
  if (!starts_with(line, "// ## ")) return "";
  const std::size_t dot = line.find(". ");
  return dot == std::string::npos ? "" : line.substr(dot + 2);
}

}  // namespace kitchen::tools
