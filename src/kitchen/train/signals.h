#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace kitchen::train {

/// What a signal asks of the training loop at its next step boundary.
enum class StopRequest {
  none,
  terminate,  ///< SIGTERM: save, exit 0
  interrupt,  ///< SIGINT: save, exit 130
};

/// Installs the handlers of SIGTERM and SIGINT for its lifetime, then the former ones; they set a
/// flag and nothing else. A second SIGINT ends the process at once with 130. SIGXFSZ is ignored, so
/// that a write beyond a size limit is an error with a message instead of the end of the process.
/// One object at a time in a process.
class SignalScope {
 public:
  /// Clears the flag of a former scope.
  SignalScope();
  ~SignalScope();
  SignalScope(const SignalScope&) = delete;
  SignalScope& operator=(const SignalScope&) = delete;

 private:
  std::array<struct sigaction, 3> former_;
};

/// The flag. SIGTERM wins over SIGINT.
StopRequest stop_request();

/// Ends the process with 143 when a SIGTERM finds no step boundary in time, after telling on stderr
/// where the program hangs. The loop calls disarm() as soon as it has seen the flag: saving may
/// take longer.
class TerminationWatchdog {
 public:
  /// @param where Names rank and op; called on the watchdog's own thread.
  TerminationWatchdog(std::function<std::string()> where,
                      std::chrono::milliseconds grace = std::chrono::seconds(5));
  ~TerminationWatchdog();
  TerminationWatchdog(const TerminationWatchdog&) = delete;
  TerminationWatchdog& operator=(const TerminationWatchdog&) = delete;

  void disarm();

 private:
  void watch();

  std::function<std::string()> where_;
  std::chrono::milliseconds grace_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool disarmed_ = false;
  std::thread thread_;
};

}  // namespace kitchen::train
