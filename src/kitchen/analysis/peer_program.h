#pragma once

#include <string>
#include <vector>

namespace kitchen::analysis {

/// Runs `command` in a shell and reads its output line by line until `count` lines have matched,
/// then ends it.
///
/// @param pattern ECMAScript regular expression; its first group is a number.
/// @returns those numbers, in order.
/// @throws ValueError for a bad pattern or one without a group; RuntimeError naming the command if
/// it ends
///         before `count` lines matched, with its last lines.
std::vector<double> read_numbers(const std::string& command, const std::string& pattern,
                                 std::size_t count);

}  // namespace kitchen::analysis
