#pragma once

#include "kitchen/train/train_settings.h"

#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace kitchen::app {

/// Flags for all settings of a run. Values are kept as given, so that they can be laid over settings that come
/// from a file: command line over --yaml-cfg over config.json (resume) over defaults.
class SettingFlags {
 public:
  /// @param defaults what a setting is where neither the command line nor a file names it.
  /// @param left_out names of settings that the command chooses itself: no flag, and no place in a file.
  explicit SettingFlags(train::TrainSettings defaults = {}, std::vector<std::string> left_out = {})
      : defaults_(std::move(defaults)), left_out_(std::move(left_out)) {}

  /// Declares the flags, grouped by section, with the defaults in their help.
  void declare(CLI::App& app);

  /// The effective settings. Reads --yaml-cfg, and the run folder's config.json on --resume.
  [[nodiscard]] train::TrainSettings resolve() const;

 private:
  [[nodiscard]] bool is_left_out(const train::Setting& setting) const;
  [[nodiscard]] bool has_flag(const train::Setting& setting) const;
  void read_yaml(train::TrainSettings& settings) const;

  train::TrainSettings defaults_;
  std::vector<std::string> left_out_;
  std::vector<train::TrainSettings> given_;  ///< one entry, set by the parser
  std::string yaml_cfg_;
  bool bf16_ = false;
  bool fp32_ = false;
  bool fp16_ = false;
  const CLI::App* app_ = nullptr;
};

}  // namespace kitchen::app
