#pragma once

namespace kitchen::app {

/// Prints what is missing and returns false if this processor lacks instructions that the program
/// is built with.
bool check_cpu_level();

}  // namespace kitchen::app
