#include "kitchen/app/setting_flags.h"

#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/base/nearest_name.h"
#include "kitchen/base/rethrow.h"
#include "kitchen/config/config_value.h"
#include "kitchen/config/yaml.h"
#include "kitchen/train/durable_file.h"
#include "kitchen/train/run_folder.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

namespace kitchen::app {

namespace {

std::string flag_of(const train::Setting& setting) {
  return std::string("--") + setting.name;
}

/// The parser turns what does not fit 64 bits into the nearest number, without a word.
std::string out_of_range(const std::string& text) {
  errno = 0;
  (void)std::strtoll(text.c_str(), nullptr, 10);
  return errno == ERANGE ? "'" + text + "' does not fit a whole number of 64 bits" : std::string();
}

void declare_one(CLI::App& app, const train::Setting& setting, train::TrainSettings& target) {
  CLI::Option* option = std::visit(
      [&](auto member) -> CLI::Option* {
        auto& value = target.*member;
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, bool>) {
          return app.add_flag(flag_of(setting), value, setting.help);
        } else {
          return app.add_option(flag_of(setting), value, setting.help);
        }
      },
      setting.member);
  option->group(setting.section);
  if (option->get_type_name() == "INT") option->check(CLI::Validator(&out_of_range, ""));
  const std::string shown = train::setting_text(target, setting);
  if (shown != "null" && shown != "false" && shown != "\"\"") option->default_str(shown);
}

void copy_member(const train::Setting& setting, const train::TrainSettings& from,
                 train::TrainSettings& to) {
  std::visit([&](auto member) { to.*member = from.*member; }, setting.member);
}

void read_saved_settings(const std::string& path, train::TrainSettings& settings) {
  try {
    train::update_from_json(settings, train::read_file(path));
  } catch (const Error& error) {
    rethrow_with_suffix(error,
                        "; in " + path +
                            ". Put the file back as the run wrote it: the entry \"config\" of "
                            "a checkpoint's index.json holds the same settings");
  }
}

}  // namespace

bool SettingFlags::is_left_out(const train::Setting& setting) const {
  return std::find(left_out_.begin(), left_out_.end(), setting.name) != left_out_.end();
}

bool SettingFlags::has_flag(const train::Setting& setting) const {
  return std::string(setting.name) != "precision" && !is_left_out(setting);
}

void SettingFlags::read_yaml(train::TrainSettings& settings) const {
  train::update_from_config(settings,
                            parse_yaml_mapping_file(yaml_cfg_, "settings such as num_layers: 4"));
  for (const train::Setting& setting : train::setting_table()) {
    const std::string found = train::setting_text(settings, setting);
    if (!is_left_out(setting) || found == train::setting_text(defaults_, setting)) continue;
    throw ValueError(yaml_cfg_ + ": sets " + setting.name + " to " + found +
                     ", which this command chooses itself; leave it out of the file");
  }
}

void SettingFlags::declare(CLI::App& app) {
  given_.assign(1, defaults_);
  app_ = &app;
  for (const train::Setting& setting : train::setting_table()) {
    if (has_flag(setting)) declare_one(app, setting, given_[0]);
  }
  app.add_flag("--bf16", bf16_, "bf16 parameters and activations, fp32 main weights (default)")
      ->group("precision");
  app.add_flag("--fp32", fp32_, "float32 parameters and activations")->group("precision");
  app.add_flag("--fp16", fp16_, "not available: needs loss scaling")->group("precision");
  app.add_option("--yaml-cfg", yaml_cfg_,
                 "YAML file of settings (num_layers: 4); flags win over it")
      ->group("run");
}

train::TrainSettings SettingFlags::resolve() const {
  const train::TrainSettings& given = given_[0];
  if (fp16_) {
    throw NotImplementedError(
        "--fp16: training in float16 needs loss scaling, which is not available; use "
        "--bf16 or --fp32");
  }
  if (bf16_ && fp32_) throw ValueError("--bf16 and --fp32 exclude each other; choose one");
  train::TrainSettings settings = defaults_;
  if (given.resume) {
    if (given.run_dir.empty())
      throw ValueError("--resume needs --run-dir, the folder of the run to go on with");
    const std::string path = train::RunFolder::open(given.run_dir, /*resume=*/true).config_path();
    if (std::filesystem::exists(path)) {
      read_saved_settings(path, settings);
      settings.exit_interval = std::nullopt;  // belongs to the command that stopped the run
    } else {
      logger().warning(path +
                       ": missing; the settings of the run are taken from this command line alone");
    }
  }
  if (!yaml_cfg_.empty()) read_yaml(settings);
  for (const train::Setting& setting : train::setting_table()) {
    if (has_flag(setting) && app_->count(flag_of(setting)) > 0)
      copy_member(setting, given, settings);
  }
  if (bf16_) settings.precision = "bf16";
  if (fp32_) settings.precision = "fp32";
  return settings;
}

}  // namespace kitchen::app
