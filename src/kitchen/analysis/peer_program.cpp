#include "kitchen/analysis/peer_program.h"

#include "kitchen/base/error.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <regex>

namespace kitchen::analysis {

namespace {

constexpr std::size_t kLinesKept = 5;

/// A shell command whose output is read through a pipe; ended with its children when the object
/// goes.
class ShellCommand {
 public:
  explicit ShellCommand(const std::string& command) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      throw RuntimeError(std::string("pipe: ") + std::strerror(errno));
    pid_ = ::fork();
    if (pid_ == 0) {
      // A group of its own, so that the shell's children end with it.
      ::setpgid(0, 0);
      ::dup2(ends[1], STDOUT_FILENO);
      ::dup2(ends[1], STDERR_FILENO);
      ::execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
      ::_exit(127);
    }
    ::close(ends[1]);
    if (pid_ < 0) {
      ::close(ends[0]);
      throw RuntimeError(std::string("fork: ") + std::strerror(errno));
    }
    ::setpgid(pid_, pid_);
    output_ = ::fdopen(ends[0], "r");
  }
  ~ShellCommand() {
    ::kill(-pid_, SIGKILL);
    std::fclose(output_);
    ::waitpid(pid_, nullptr, 0);
  }
  ShellCommand(const ShellCommand&) = delete;
  ShellCommand& operator=(const ShellCommand&) = delete;

  bool read_line(std::string& line) {
    char* buffer = nullptr;
    std::size_t capacity = 0;
    const ::ssize_t size = ::getline(&buffer, &capacity, output_);
    if (size > 0) line.assign(buffer, static_cast<std::size_t>(size));
    std::free(buffer);
    return size > 0;
  }

 private:
  ::pid_t pid_ = -1;
  std::FILE* output_ = nullptr;
};

std::regex compile(const std::string& pattern) {
  try {
    std::regex compiled(pattern);
    if (compiled.mark_count() >= 1) return compiled;
  } catch (const std::regex_error& error) {
    throw ValueError(
        fmt::format("--peer-pattern '{}' is no regular expression: {}", pattern, error.what()));
  }
  throw ValueError(fmt::format(
      "--peer-pattern '{}' has no group in parentheses, which would hold the milliseconds",
      pattern));
}

}  // namespace

std::vector<double> read_numbers(const std::string& command, const std::string& pattern,
                                 std::size_t count) {
  const std::regex expression = compile(pattern);
  ShellCommand child(command);
  std::vector<double> numbers;
  std::deque<std::string> last;
  std::string line;
  while (numbers.size() < count && child.read_line(line)) {
    std::smatch match;
    if (std::regex_search(line, match, expression))
      numbers.push_back(std::strtod(match[1].str().c_str(), nullptr));
    last.push_back(line);
    if (last.size() > kLinesKept) last.pop_front();
  }
  if (numbers.size() == count) return numbers;
  std::string tail;
  for (const std::string& text : last) tail += "  " + text;
  throw RuntimeError(
      fmt::format("--peer '{}' ended after {} of {} lines that match '{}'; its last lines:\n{}",
                  command, numbers.size(), count, pattern, tail));
}

}  // namespace kitchen::analysis
