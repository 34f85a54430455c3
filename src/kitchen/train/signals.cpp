#include "kitchen/train/signals.h"

#include <fmt/format.h>

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>

namespace kitchen::train {

namespace {

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

void install(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;  // a signal must not make the reads and writes of libraries fail
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

SignalScope::SignalScope() {
  terminate_seen.store(false);
  interrupt_seen.store(false);
  install(SIGTERM, on_terminate);
  install(SIGINT, on_interrupt);
  install(SIGXFSZ, SIG_IGN);
}

SignalScope::~SignalScope() {
  for (const int signal : {SIGTERM, SIGINT, SIGXFSZ}) install(signal, SIG_DFL);
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
  fmt::print(stderr, "SIGTERM: no step boundary within {} ms: {}; exit without a save\n",
             grace_.count(), where_());
  // No destructors: the hanging thread may hold any lock.
  std::_Exit(kExitTerminated);
}

}  // namespace kitchen::train
