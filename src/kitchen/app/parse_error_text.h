#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace kitchen::app {

/// What is wrong with a command line, for a reader who has never seen the parser: the flag, what
/// was found, what is expected, the nearest known name, and which help to read.
std::string parse_error_text(const CLI::App& root, const CLI::ParseError& error,
                             const std::vector<std::string>& arguments);

}  // namespace kitchen::app
