#include "kitchen/train/signals.h"

#include <fmt/format.h>

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>

namespace kitchen::train {

namespace {

constexpr std::array<int, 3> kSignals{SIGTERM, SIGINT, SIGXFSZ};
constexpr int kExitInterrupted = 130;
constexpr int kExitTerminated = 143;

// A handler gets no argument of ours: process-wide state is what the system offers. Lock-free
// atomics are safe in handlers and visible to the watchdog's thread.
std::atomic<bool> terminate_seen{false};
std::atomic<bool> interrupt_seen{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void on_terminate(int /*signal*/) {
  terminate_seen.store(true);
}

void on_interrupt(int /*signal*/) {
  if (interrupt_seen.exchange(true)) ::_exit(kExitInterrupted);
}

/// Returns what was installed before.
struct sigaction install(int signal, void (*handler)(int)) {
  struct sigaction action {};
  struct sigaction former {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;  // a signal must not make the reads and writes of libraries fail
  ::sigaction(signal, &action, &former);
  return former;
}

}  // namespace

SignalScope::SignalScope() {
  terminate_seen.store(false);
  interrupt_seen.store(false);
  former_ = {install(kSignals[0], on_terminate), install(kSignals[1], on_interrupt),
             install(kSignals[2], SIG_IGN)};
}

SignalScope::~SignalScope() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &former_[i], nullptr);
  }
}

StopRequest stop_request() {
  if (terminate_seen.load()) return StopRequest::terminate;
  return interrupt_seen.load() ? StopRequest::interrupt : StopRequest::none;
}

TerminationWatchdog::TerminationWatchdog(std::function<std::string()> where,
                                         std::chrono::milliseconds grace)
    : where_(std::move(where)), grace_(grace), thread_([this] { watch(); }) {}

TerminationWatchdog::~TerminationWatchdog() {
  disarm();
  thread_.join();
}

void TerminationWatchdog::disarm() {
  const std::lock_guard lock(mutex_);
  disarmed_ = true;
  changed_.notify_all();
}

void TerminationWatchdog::watch() {
  constexpr std::chrono::milliseconds kPoll(20);
  std::unique_lock lock(mutex_);
  const auto is_disarmed = [this] { return disarmed_; };
  while (stop_request() != StopRequest::terminate) {
    if (changed_.wait_for(lock, kPoll, is_disarmed)) return;
  }
  if (changed_.wait_for(lock, grace_, is_disarmed)) return;
  const std::string text =
      fmt::format("SIGTERM: no step boundary within {} ms: {}; exit without a save\n",
                  grace_.count(), where_());
  // No stream and no destructors: the hanging thread may hold any lock.
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) std::_Exit(kExitTerminated);
  std::_Exit(kExitTerminated);
}

}  // namespace kitchen::train
