#include "kitchen/analysis/recipe_runs.h"
#include "kitchen/analysis/text_table.h"
#include "kitchen/app/commands.h"
#include "kitchen/app/device.h"
#include "kitchen/app/exit_status.h"
#include "kitchen/app/setting_flags.h"
#include "kitchen/train/progress.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <unistd.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace kitchen::app {

namespace {

/// The model and the schedule of tools/quickstart.
train::TrainSettings quickstart_settings() {
  train::TrainSettings settings;
  settings.train_iters = 500;
  return settings;
}

struct CompareFlags {
  std::vector<std::string> recipes;
  std::vector<std::string> files;
  std::vector<std::string> seeds{"1234", "1235", "1236"};
  std::string folder;
  SettingFlags settings{quickstart_settings(),
                        {"kitchen-config-file", "kitchen-recipe-number", "kitchen-recipe-name",
                         "seed", "run-dir", "resume", "exit-interval"}};
};

analysis::RecipeRunsPlan plan_of(const CompareFlags& flags) {
  std::vector<std::string> recipes = flags.recipes;
  if (recipes.empty() && flags.files.empty()) recipes = {"bf16", "fp8_cs", "mxfp8", "nvfp4"};
  if (recipes.empty()) recipes = {"bf16"};
  return {analysis::choose_recipes(recipes, flags.files), analysis::parse_seeds(flags.seeds),
          flags.settings.resolve(), flags.folder};
}

int compare(const CompareFlags& flags) {
  const analysis::RecipeRunsPlan plan = plan_of(flags);
  const ContextPtr context = make_context(plan.settings.backend, plan.settings.num_threads);
  const train::TrainerOutput output{&std::cout, isatty(STDOUT_FILENO) == 1,
                                    train::terminal_width(STDOUT_FILENO)};
  const train::RunEnd end = analysis::train_recipes(plan, context, output);
  if (end != train::RunEnd::finished) {
    fmt::print("stopped before the end; the same command goes on where it was. Runs are in {}\n",
               plan.folder);
    return end == train::RunEnd::interrupted ? kInterrupted : kDone;
  }
  const report::RecipeComparison comparison = analysis::write_comparison(plan);
  fmt::print("\n{}\n{}\n\ncomparison {}\n",
             analysis::format_table(report::comparison_table(comparison)),
             report::comparison_headline(comparison), plan.folder + "/compare.html");
  return kDone;
}

}  // namespace

void add_recipes_compare(CLI::App& recipes, Action& action) {
  auto flags = std::make_shared<CompareFlags>();
  CLI::App* command = recipes.add_subcommand(
      "compare", "train one model under several recipes and seeds, and say which differ");
  command
      ->add_option("--recipes", flags->recipes,
                   "names or numbers with commas between; the first is the reference. Default: "
                   "bf16,fp8_cs,mxfp8,nvfp4, or bf16 beside --recipe-files")
      ->delimiter(',');
  command->add_option("--recipe-files", flags->files, "YAML recipe files, with commas between")
      ->delimiter(',');
  command
      ->add_option("--seeds", flags->seeds,
                   "of weights and data order, with commas between; default 1234,1235,1236")
      ->delimiter(',');
  command
      ->add_option("--out", flags->folder,
                   "folder for the runs and compare.md, .json and .html; finished runs in it "
                   "are not trained again")
      ->required();
  flags->settings.declare(*command);
  command->callback([flags, &action] { action = [flags] { return compare(*flags); }; });
}

}  // namespace kitchen::app
