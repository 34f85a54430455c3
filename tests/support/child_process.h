#pragma once

#include <gtest/gtest.h>

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// @file  child_process.h
/// @brief Runs a program as a user would, and reads what it printed and how it ended.

namespace kitchen::testing {

/// How a child ended, and what it wrote.
struct ChildResult {
  int status = 0;  ///< exit status; 128 + signal if a signal ended it
  std::string out;
  std::string err;
};

struct ChildOptions {
  std::optional<std::uint64_t> max_file_bytes;  ///< RLIMIT_FSIZE: a disk that is full
  std::string directory;                        ///< to run in; empty: this process's
};

/// A running child. Ended by SIGKILL if the object goes before finish().
class ChildProcess {
 public:
  explicit ChildProcess(const std::vector<std::string>& command, const ChildOptions& options = {});
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// True as soon as its output holds `text`; false if that has not come after `seconds`, or it has
  /// ended.
  bool wait_for_output(const std::string& text, double seconds);
  void send_signal(int signal) const;
  /// Waits for the end, and kills the child after `seconds`.
  ChildResult finish(double seconds = 60.0);

 private:
  bool has_ended();

  std::string folder_;  ///< holds the files that the child writes its output to
  ::pid_t pid_ = -1;
  std::optional<int> wait_status_;
};

/// Starts `command` and waits for its end.
ChildResult run_child(const std::vector<std::string>& command, const ChildOptions& options = {});

/// The exit status is `status`, and the errors hold every one of `phrases`.
::testing::AssertionResult ends_with(const ChildResult& result, int status,
                                     const std::vector<std::string>& phrases);

}  // namespace kitchen::testing
