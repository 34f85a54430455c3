#include "kitchen/train/run_folder.h"

#include "kitchen/base/error.h"
#include "kitchen/train/durable_file.h"

#include <fmt/format.h>

#include <filesystem>

namespace kitchen::train {

namespace {

/// Names of what a run wrote into the folder, with commas between.
std::string traces_of_a_run(const RunFolder& folder) {
  std::string found;
  for (const std::string& path : {folder.checkpoint_path(), folder.metrics_path(),
                                  folder.config_path(), folder.samples_path(), folder.report_path()}) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    found += (found.empty() ? "" : ", ") + std::filesystem::path(path).filename().string();
  }
  return found;
}

}  // namespace

RunFolder RunFolder::open(const std::string& path, bool resume) {
  if (path.empty()) throw ValueError("--run-dir: the path is empty, expected a folder");
  RunFolder folder(path);
  const std::string traces = traces_of_a_run(folder);
  if (!resume && !traces.empty()) {
    throw ValueError(fmt::format(
        "{}: holds another run ({}), expected a new or empty folder; go on with it by --resume or "
        "take another --run-dir",
        path, traces));
  }
  if (resume && traces.empty()) {
    throw ValueError(fmt::format(
        "{}: holds no run to resume; give the --run-dir of a run, or start one without --resume",
        path));
  }
  check_writable(path);
  return folder;
}

}  // namespace kitchen::train
