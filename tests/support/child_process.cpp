#include "support/child_process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

namespace kitchen::testing {

namespace {

using Clock = std::chrono::steady_clock;

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void redirect(const std::string& path, int descriptor) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::dup2(file, descriptor);
}

/// The child's side of the fork: never returns.
[[noreturn]] void become(const std::vector<std::string>& command, const ChildOptions& options,
                         const std::string& folder) {
  redirect(folder + "/out", STDOUT_FILENO);
  redirect(folder + "/err", STDERR_FILENO);
  // One thread each, so that tests that run side by side do not slow each other down.
  ::setenv("OMP_NUM_THREADS", "1", 1);
  if (!options.directory.empty() && ::chdir(options.directory.c_str()) != 0) ::_exit(126);
  if (options.max_file_bytes) {
    const rlimit limit{*options.max_file_bytes, *options.max_file_bytes};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(126);
  }
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

void pause_briefly() {
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command, const ChildOptions& options) {
  folder_ = (std::filesystem::temp_directory_path() / "kitchen_child_XXXXXX").string();
  if (::mkdtemp(folder_.data()) == nullptr) std::abort();
  pid_ = ::fork();
  if (pid_ < 0) std::abort();
  if (pid_ == 0) become(command, options, folder_);
}

ChildProcess::~ChildProcess() {
  if (!has_ended()) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

bool ChildProcess::has_ended() {
  if (wait_status_) return true;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return false;
  wait_status_ = status;
  return true;
}

bool ChildProcess::wait_for_output(const std::string& text, double seconds) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < deadline) {
    const bool ended = has_ended();
    if (contents(folder_ + "/out").find(text) != std::string::npos) return true;
    if (ended) return false;
    pause_briefly();
  }
  return false;
}

void ChildProcess::send_signal(int signal) const {
  ::kill(pid_, signal);
}

ChildResult ChildProcess::finish(double seconds) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  while (!has_ended() && Clock::now() < deadline) pause_briefly();
  if (!has_ended()) {
    send_signal(SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    wait_status_ = status;
  }
  const int status =
      WIFEXITED(*wait_status_) ? WEXITSTATUS(*wait_status_) : 128 + WTERMSIG(*wait_status_);
  return {status, contents(folder_ + "/out"), contents(folder_ + "/err")};
}

ChildResult run_child(const std::vector<std::string>& command, const ChildOptions& options) {
  return ChildProcess(command, options).finish();
}

::testing::AssertionResult ends_with(const ChildResult& result, int status,
                                     const std::vector<std::string>& phrases) {
  if (result.status != status) {
    return ::testing::AssertionFailure()
           << "exit status " << result.status << ", expected " << status
           << "; errors: " << result.err << "; output: " << result.out;
  }
  for (const std::string& phrase : phrases) {
    if (result.err.find(phrase) == std::string::npos) {
      return ::testing::AssertionFailure() << "\"" << phrase << "\" is not in: " << result.err;
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace kitchen::testing
