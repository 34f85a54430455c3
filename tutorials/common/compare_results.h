#pragma once

#include <string>
#include <vector>

namespace kitchen::tutorials {

/// What is wrong with a run of a tutorial, one line a finding; empty if nothing is.
///
/// `folder`/results.json must have the keys of `expected_path` and no others, each number of kind
/// exact equal and each of kind within inside its tolerance (that of the expectation; NaN fails);
/// times are not compared. Each figure must be there, titled, and well-formed XML.
/// @throws std::exception if a file cannot be read or is no JSON.
std::vector<std::string> compare_results(const std::string& folder,
                                         const std::string& expected_path);

/// Writes the expectation that a run's results.json stands for: the same without times.
void update_expected(const std::string& folder, const std::string& expected_path);

}  // namespace kitchen::tutorials
