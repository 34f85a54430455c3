/// @file  check_results.cpp
/// @brief Compares a run of a tutorial with what its folder expects.
///
/// Usage: check_results [--update] <folder of results.json> <expected.json>
/// Exit code: 0 they agree, or the expectation was written; 1 they differ; 2 wrong usage or files;
/// 3 the folder has no run.

#include "common/compare_results.h"

#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool updates = !arguments.empty() && arguments[0] == "--update";
  if (updates) arguments.erase(arguments.begin());
  if (arguments.size() != 2) {
    std::cerr << "usage: check_results [--update] <folder> <expected.json>\n";
    return 2;
  }
  if (!std::filesystem::exists(arguments[0] + "/results.json")) {
    std::cerr << "check_results: " << arguments[0] << " has no results.json\n";
    return 3;
  }
  try {
    if (updates) {
      kitchen::tutorials::update_expected(arguments[0], arguments[1]);
      return 0;
    }
    const auto mistakes = kitchen::tutorials::compare_results(arguments[0], arguments[1]);
    for (const std::string& mistake : mistakes) std::cerr << mistake << '\n';
    return mistakes.empty() ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "check_results: " << error.what() << '\n';
    return 2;
  }
}
