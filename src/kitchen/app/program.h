#pragma once

namespace kitchen::app {

/// Parses the command line, runs the subcommand, prints errors. @returns the exit status.
int run_program(int argc, char** argv);

}  // namespace kitchen::app
