/// @file  check_tutorials.cpp
/// @brief Checks what makes a ladder of tutorials: order, small steps, ideas introduced before use.
///
/// Usage: check_tutorials [root]       exit 0: clean, 1: violations (file:line: message), 2: wrong
/// usage

#include "source_tree.h"
#include "tutorial_source.h"

#include <exception>
#include <iostream>
#include <map>
#include <set>

namespace kitchen::tools {
namespace {

constexpr std::size_t kMaxProgramLines = 250;
constexpr std::size_t kMaxNewIdeas = 3;
constexpr std::size_t kMaxLinesToFirstNumber = 15;

std::string readme_of(const Tutorial& tutorial) {
  return "tutorials/" + tutorial.name + "/README.md";
}
std::string program_of(const Tutorial& tutorial) {
  return "tutorials/" + tutorial.name + "/main.cpp";
}

/// What a reader knows who has done `tutorial`: the ideas of it and of all that it builds on.
using Ideas = std::map<std::string, std::set<std::string>>;

void check_place(const Tutorial& tutorial, Ideas& known, Findings& findings) {
  std::set<std::string> ideas;
  for (const std::string& base : tutorial.builds_on) {
    const auto found = known.find(base);
    if (found == known.end()) {
      findings.error(readme_of(tutorial), 1,
                     "builds on '" + base + "', which is no earlier tutorial");
    } else {
      ideas.insert(found->second.begin(), found->second.end());
    }
  }
  for (const std::string& idea : tutorial.needs) {
    if (ideas.count(idea) == 0) {
      findings.error(readme_of(tutorial), 1,
                     "needs '" + idea + "', which no tutorial that it builds on introduces");
    }
  }
  if (tutorial.introduces.size() > kMaxNewIdeas) {
    findings.error(readme_of(tutorial), 1,
                   std::to_string(tutorial.introduces.size()) + " new ideas, at most " +
                       std::to_string(kMaxNewIdeas) + "; split the tutorial");
  }
  ideas.insert(tutorial.introduces.begin(), tutorial.introduces.end());
  known[tutorial.name] = ideas;
}

void check_stages(const Tutorial& tutorial, Findings& findings) {
  std::size_t stages = 0;
  std::size_t first_number = 0;
  std::size_t first_code = 0;
  for (std::size_t i = 0; i < tutorial.program.size(); ++i) {
    const std::string& line = tutorial.program[i];
    if (stages == 1 && first_code == 0 && !starts_with(line, "//")) first_code = i + 1;
    if (first_number == 0 && line.find("lesson.number(") != std::string::npos) first_number = i + 1;
    const std::string title = stage_heading(line);
    if (title.empty()) continue;
    ++stages;
    if (!starts_with(line, "// ## " + std::to_string(stages) + ". ")) {
      findings.error(program_of(tutorial), i + 1, "expected stage " + std::to_string(stages));
    }
    bool is_run = false;
    for (const std::string& other : tutorial.program) {
      is_run = is_run || other.find("{\"" + title + "\", ") != std::string::npos;
    }
    if (!is_run) findings.error(program_of(tutorial), i + 1, "no stage \"" + title + "\" in main");
  }
  if (stages == 0) findings.error(program_of(tutorial), 1, "no stage '// ## 1. ...'");
  if (first_number == 0 || first_number >= first_code + kMaxLinesToFirstNumber) {
    findings.error(program_of(tutorial), first_code,
                   "the first stage prints no number within " +
                       std::to_string(kMaxLinesToFirstNumber) + " lines");
  }
}

void check_tutorial(const std::string& root, const Tutorial& tutorial, Ideas& known,
                    Findings& findings) {
  check_place(tutorial, known, findings);
  check_stages(tutorial, findings);
  if (tutorial.program.size() > kMaxProgramLines) {
    findings.error(program_of(tutorial), kMaxProgramLines,
                   "a program of " + std::to_string(tutorial.program.size()) + " lines, at most " +
                       std::to_string(kMaxProgramLines));
  }
  for (const std::string& file : tutorial.library) {
    if (!exists(root, file))
      findings.error(readme_of(tutorial), 1, file + " is not in the library");
  }
}

}  // namespace
}  // namespace kitchen::tools

int main(int argc, char** argv) {
  using namespace kitchen::tools;
  if (argc > 2) {
    std::cerr << "usage: check_tutorials [root]\n";
    return 2;
  }
  const std::string root = argc == 2 ? argv[1] : ".";
  try {
    Findings findings;
    Ideas known;
    const std::vector<Tutorial> tutorials = read_tutorials(root);
    for (const Tutorial& tutorial : tutorials) check_tutorial(root, tutorial, known, findings);
    return findings.report("check_tutorials", tutorials.size());
  } catch (const std::exception& error) {
    std::cerr << "check_tutorials: " << error.what() << '\n';
    return 2;
  }
}
