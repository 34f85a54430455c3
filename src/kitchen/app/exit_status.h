#pragma once

namespace kitchen::app {

/// Exit status of the program.
enum ExitStatus : int {
  kDone = 0,
  kFailedWhileWorking = 1,
  kBadInput = 2,         ///< flags, environment, configuration or data
  kDeviceUnusable = 3,
  kInterrupted = 130,
  kTerminated = 143,
};

}  // namespace kitchen::app
