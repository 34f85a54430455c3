#include "kitchen/analysis/recipe_check.h"
#include "kitchen/analysis/recipe_listing.h"
#include "kitchen/app/commands.h"
#include "kitchen/app/device.h"
#include "kitchen/app/exit_status.h"
#include "kitchen/app/setting_flags.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <memory>
#include <string>

namespace kitchen::app {

namespace {

struct CheckFlags {
  std::string file;
  SettingFlags settings;
};

int list() {
  fmt::print("{}", analysis::list_recipes());
  return kDone;
}

/// No predefined recipe has a name like a file's.
bool is_file_name(const std::string& text) {
  return text.find('/') != std::string::npos ||
         std::filesystem::path(text).extension() == ".yaml" ||
         std::filesystem::path(text).extension() == ".yml";
}

int explain(const std::string& recipe) {
  fmt::print("{}", is_file_name(recipe) ? analysis::explain_recipe_file(recipe)
                                        : analysis::explain_recipe(recipe));
  return kDone;
}

int check(const CheckFlags& flags) {
  train::TrainSettings settings = flags.settings.resolve();
  settings.kitchen_config_file = flags.file;
  const analysis::RecipeCheck result =
      analysis::check_recipe(settings, make_context(settings.backend, settings.num_threads));
  fmt::print("{}\n{}: good for this model, {} warnings\n", result.text, flags.file,
             result.warnings.size());
  return kDone;
}

}  // namespace

void add_recipes(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("recipes", "list, explain, check and compare quantization recipes");
  command->require_subcommand(1);

  CLI::App* list_command = command->add_subcommand("list", "all predefined recipes");
  list_command->callback([&action] { action = [] { return list(); }; });

  auto recipe = std::make_shared<std::string>();
  CLI::App* explain_command = command->add_subcommand("explain", "what one recipe does");
  explain_command->add_option("recipe", *recipe, "number or name, such as 2 or mxfp8, or a YAML recipe file")->required();
  explain_command->callback([recipe, &action] { action = [recipe] { return explain(*recipe); }; });

  auto flags = std::make_shared<CheckFlags>();
  CLI::App* check_command = command->add_subcommand(
      "check", "check a YAML recipe against a model: layer -> rule -> config");
  check_command->add_option("file", flags->file, "YAML recipe file")->required();
  flags->settings.declare(*check_command);
  check_command->callback([flags, &action] { action = [flags] { return check(*flags); }; });

  add_recipes_compare(*command, action);
}

}  // namespace kitchen::app
