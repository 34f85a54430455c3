#include "kitchen/app/commands.h"
#include "kitchen/app/exit_status.h"
#include "kitchen/base/device_error.h"
#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <exception>

namespace {

using kitchen::app::ExitStatus;

int tell(const char* text, ExitStatus status) {
  fmt::print(stderr, "kitchen: {}\n", text);
  return status;
}

/// A failure while working is status 1, everything that the user can set right is 2.
int run(const kitchen::app::Action& action) {
  try {
    return action();
  } catch (const kitchen::DeviceError& error) {
    return tell(error.what(), kitchen::app::kDeviceUnusable);
  } catch (const kitchen::RuntimeError& error) {
    return tell(error.what(), kitchen::app::kFailedWhileWorking);
  } catch (const kitchen::Error& error) {
    return tell(error.what(), kitchen::app::kBadInput);
  } catch (const std::exception& error) {
    return tell(error.what(), kitchen::app::kFailedWhileWorking);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains small GPTs with quantized layers, and shows what quantization does.", "kitchen");
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::help);
  bool verbose = false;
  app.add_flag("--verbose", verbose, "also print informational log lines");
  kitchen::app::Action action;
  kitchen::app::add_train(app, action);
  kitchen::app::add_generate(app, action);
  kitchen::app::add_report(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked_for_help = error.get_exit_code() == 0;
    if (asked_for_help) return app.exit(error);
    fmt::print(stderr, "kitchen: {}\nRun `kitchen --help`, or `kitchen <subcommand> --help`.\n", error.what());
    return kitchen::app::kBadInput;
  }
  if (verbose) kitchen::logger().set_level(kitchen::LogLevel::info);
  return run(action);
}
