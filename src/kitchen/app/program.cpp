#include "kitchen/app/program.h"

#include "kitchen/app/commands.h"
#include "kitchen/app/exit_status.h"
#include "kitchen/app/help_formatter.h"
#include "kitchen/app/parse_error_text.h"
#include "kitchen/base/device_error.h"
#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

namespace kitchen::app {

namespace {

int tell(const char* text, ExitStatus status) {
  fmt::print(stderr, "kitchen: {}\n", text);
  return status;
}

/// A failure while working is status 1, everything that the user can set right is 2.
int run(const Action& action) {
  try {
    return action();
  } catch (const DeviceError& error) {
    return tell(error.what(), kDeviceUnusable);
  } catch (const RuntimeError& error) {
    return tell(error.what(), kFailedWhileWorking);
  } catch (const Error& error) {
    return tell(error.what(), kBadInput);
  } catch (const std::bad_alloc&) {
    return tell("out of memory; use a smaller micro-batch, sequence or model", kFailedWhileWorking);
  } catch (const std::exception& error) {
    return tell(error.what(), kFailedWhileWorking);
  }
}

}  // namespace

int run_program(int argc, char** argv) {
  // A file size limit is then a failed write, whose error names the file, instead of a silent end.
  std::signal(SIGXFSZ, SIG_IGN);
  CLI::App app("Trains small GPTs with quantized layers, and shows what quantization does.",
               "kitchen");
  app.require_subcommand(1);
  app.formatter(make_help_formatter());
  app.set_help_flag("-h,--help", "print this help and exit");
  app.footer("`kitchen <subcommand> --help` lists the flags of a subcommand.");
  bool verbose = false;
  app.add_flag("--verbose", verbose, "also print informational log lines");
  Action action;
  add_train(app, action);
  add_generate(app, action);
  add_recipes(app, action);
  add_inspect(app, action);
  add_report(app, action);
  add_bench(app, action);
  add_doctor(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    return tell(parse_error_text(app, error, arguments).c_str(), kBadInput);
  }
  if (verbose) logger().set_level(LogLevel::info);
  return run(action);
}

}  // namespace kitchen::app
