#pragma once

#include <string>
#include <utility>

namespace kitchen::train {

/// The folder that one training run writes, and the names in it.
class RunFolder {
 public:
  /// Makes an empty run folder, or takes over one for a resume. Deletes nothing, ever; files that
  /// no run wrote may lie in it.
  /// @throws ValueError if a new run finds the files of another one, listing them, or a resume
  /// finds none; IOError naming path and cause if the folder cannot be made or written.
  static RunFolder open(const std::string& path, bool resume);

  /// The names in a folder that another rank has opened.
  static RunFolder of_other_rank(const std::string& path) { return RunFolder(path); }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string checkpoint_path() const { return path_ + "/checkpoint"; }
  [[nodiscard]] std::string metrics_path() const { return path_ + "/metrics.jsonl"; }
  [[nodiscard]] std::string config_path() const { return path_ + "/config.json"; }
  [[nodiscard]] std::string samples_path() const { return path_ + "/samples.txt"; }
  [[nodiscard]] std::string quantization_path() const { return path_ + "/quantization.json"; }
  [[nodiscard]] std::string op_times_path() const { return path_ + "/op_times.json"; }
  [[nodiscard]] std::string report_path() const { return path_ + "/report.html"; }

 private:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

}  // namespace kitchen::train
