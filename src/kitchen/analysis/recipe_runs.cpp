#include "kitchen/analysis/recipe_runs.h"

#include "kitchen/base/error.h"
#include "kitchen/base/rank_state.h"
#include "kitchen/base/rethrow.h"
#include "kitchen/recipes/predefined.h"
#include "kitchen/train/checkpoint_folder.h"
#include "kitchen/train/durable_file.h"
#include "kitchen/train/memory_plan.h"
#include "kitchen/train/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <ostream>
#include <set>
#include <sstream>

namespace kitchen::analysis {

namespace {

namespace fs = std::filesystem;

/// All of `text` as a whole number from 0 on.
std::optional<std::int64_t> parse_count(const std::string& text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || stop != end || value < 0) return std::nullopt;
  return value;
}

std::string name_of_predefined(const std::string& recipe) {
  const std::optional<std::int64_t> number = parse_count(recipe);
  return number ? get_qlinear_params_from_qat_params(*number)->name
                : get_qlinear_params_from_recipe_name(recipe)->name;
}

/// One run of the plan.
struct Cell {
  const RecipeChoice* recipe = nullptr;
  std::int64_t seed = 0;
  train::TrainSettings settings;
};

enum class Progress { none, no_checkpoint, unfinished, finished };

std::string run_name(const RecipeChoice& recipe, std::int64_t seed) {
  return fmt::format("{}-seed{}", recipe.name, seed);
}

std::string run_path(const RecipeRunsPlan& plan, const RecipeChoice& recipe, std::int64_t seed) {
  return plan.folder + "/" + run_name(recipe, seed);
}

train::TrainSettings settings_of(const RecipeRunsPlan& plan, const RecipeChoice& recipe,
                                 std::int64_t seed) {
  train::TrainSettings settings = plan.settings;
  settings.seed = seed;
  settings.run_dir = run_path(plan, recipe, seed);
  if (recipe.file) {
    settings.kitchen_config_file = recipe.file;
  } else {
    settings.kitchen_recipe_name = recipe.name;
  }
  return settings;
}

/// Seed by seed, so that an interrupted comparison has whole rows of recipes.
std::vector<Cell> cells_of(const RecipeRunsPlan& plan) {
  std::vector<Cell> cells;
  for (const std::int64_t seed : plan.seeds) {
    for (const RecipeChoice& recipe : plan.recipes)
      cells.push_back({&recipe, seed, settings_of(plan, recipe, seed)});
  }
  return cells;
}

/// "fp8_cs-seed12" of this or a larger comparison, and what write_comparison leaves.
bool belongs_to_comparison(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  if (name.rfind("compare.", 0) == 0) return true;
  const std::size_t at = name.rfind("-seed");
  return entry.is_directory() && at != std::string::npos && at > 0 &&
         parse_count(name.substr(at + 5)).has_value();
}

void check_folder(const std::string& folder) {
  if (folder.empty()) throw ValueError("--out: the path is empty, expected a folder");
  if (!fs::exists(folder)) return;
  if (!fs::is_directory(folder))
    throw ValueError(folder + ": is a file, expected a folder; take another --out");
  std::set<std::string> strangers;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (!belongs_to_comparison(entry)) strangers.insert(entry.path().filename().string());
  }
  if (strangers.empty()) return;
  throw ValueError(fmt::format(
      "{}: holds something else ({}{}), expected a new or empty folder or that of a comparison; "
      "take another --out",
      folder, *strangers.begin(),
      strangers.size() == 1 ? "" : fmt::format(" and {} more", strangers.size() - 1)));
}

/// @throws ValueError if the run in the cell's folder is another one.
void require_same_settings(const Cell& cell, const std::string& config_path) {
  const std::string way_out = "; take another --out, or remove " + cell.settings.run_dir;
  train::TrainSettings saved;
  try {
    train::update_from_json(saved, train::read_file(config_path));
  } catch (const Error& error) {
    rethrow_with_suffix(error, "; in " + config_path + way_out);
  }
  std::vector<std::string> differences = train::resume_differences(saved, cell.settings);
  // It changes no weight, but the loss that is compared.
  if (saved.eval_iters != cell.settings.eval_iters) {
    differences.push_back(fmt::format("--eval-iters: {} in the run, {} asked for", saved.eval_iters,
                                      cell.settings.eval_iters));
  }
  if (differences.empty()) return;
  std::string text;
  for (const std::string& line : differences) text += "\n  " + line;
  throw ValueError(cell.settings.run_dir + ": was trained with other settings:" + text + "\n" +
                   way_out.substr(2));
}

/// Says how far a run is, after a look at whether it is the one that is asked for.
Progress examine(const Cell& cell, const ContextPtr& context) {
  if (!fs::exists(cell.settings.run_dir) || fs::is_empty(cell.settings.run_dir))
    return Progress::none;
  train::TrainSettings settings = cell.settings;
  settings.resume = true;
  const train::RunFolder folder = train::RunFolder::open(settings.run_dir, /*resume=*/true);
  require_same_settings(cell, folder.config_path());
  if (train::checkpoint_steps(folder.checkpoint_path()).empty()) return Progress::no_checkpoint;
  // Its constructor compares text and recipe by content with those of the checkpoint.
  const auto rank = std::make_shared<RankState>();
  rank->set_logs(false);
  const RankScope scope(rank);
  std::ostringstream silent;
  const train::Trainer trainer(settings, context, {&silent, false, 80});
  const bool is_whole = trainer.step() == settings.train_iters && fs::exists(folder.report_path());
  return is_whole ? Progress::finished : Progress::unfinished;
}

/// Removes what a run wrote that has no checkpoint; nothing that others put beside it.
void clear_run(const train::RunFolder& folder) {
  for (const std::string& path :
       {folder.checkpoint_path(), folder.metrics_path(), folder.quantization_path(),
        folder.op_times_path(), folder.samples_path(), folder.report_path(),
        folder.config_path()}) {
    fs::remove_all(path);
  }
}

train::RunEnd train_cell(const Cell& cell, Progress progress, const ContextPtr& context,
                         const train::TrainerOutput& output) {
  train::TrainSettings settings = cell.settings;
  settings.resume = progress == Progress::unfinished;
  const std::string place = "; in the run " + settings.run_dir;
  try {
    if (progress == Progress::no_checkpoint)
      clear_run(train::RunFolder::open(settings.run_dir, /*resume=*/true));
    // A rank state of its own: what one run registers or draws must not reach the next.
    const RankScope scope(std::make_shared<RankState>());
    train::Trainer trainer(settings, context, output);
    try {
      return trainer.run();
    } catch (const IOError& error) {
      // Once the training runs, a file that cannot be written is a failure and no longer bad input.
      throw RuntimeError(error.what());
    }
  } catch (const Error& error) {
    rethrow_with_suffix(error, place);
  }
}

/// A training step on the meta device finds what a recipe cannot do, before hours of the others.
void check_recipes(const RecipeRunsPlan& plan, const ContextPtr& context) {
  for (const RecipeChoice& recipe : plan.recipes) {
    const train::TrainSettings settings = settings_of(plan, recipe, plan.seeds.front());
    train::validate(settings);
    try {
      (void)train::plan_memory(settings, context);
    } catch (const Error& error) {
      rethrow_with_suffix(error, "; of the recipe " + recipe.name);
    }
  }
}

}  // namespace

std::vector<RecipeChoice> choose_recipes(const std::vector<std::string>& recipes,
                                         const std::vector<std::string>& files) {
  std::vector<RecipeChoice> choices;
  for (const std::string& recipe : recipes)
    choices.push_back({name_of_predefined(recipe), std::nullopt});
  for (const std::string& file : files) choices.push_back({fs::path(file).stem().string(), file});
  std::set<std::string> names;
  for (const RecipeChoice& choice : choices) {
    if (names.insert(choice.name).second) continue;
    throw ValueError(fmt::format(
        "the recipe name {} comes twice in --recipes and --recipe-files, expected distinct ones; "
        "leave one out, or rename the file",
        choice.name));
  }
  if (choices.size() < 2) {
    throw ValueError(fmt::format(
        "{} given, expected two recipes at least; the first is what the others are compared with, "
        "such as --recipes bf16,fp8_cs",
        choices.empty() ? "no recipe is" : "only the recipe " + choices[0].name + " is"));
  }
  return choices;
}

std::vector<std::int64_t> parse_seeds(const std::vector<std::string>& texts) {
  std::vector<std::int64_t> seeds;
  for (const std::string& text : texts) {
    const std::optional<std::int64_t> seed = parse_count(text);
    if (!seed) {
      throw ValueError("--seeds: found '" + text +
                       "', expected whole numbers from 0 on, such as --seeds 1234,1235,1236");
    }
    if (std::find(seeds.begin(), seeds.end(), *seed) != seeds.end()) {
      throw ValueError("--seeds: " + text +
                       " comes twice, expected distinct seeds; equal seeds give equal runs");
    }
    seeds.push_back(*seed);
  }
  if (seeds.empty()) throw ValueError("--seeds: none is given, expected one at least");
  return seeds;
}

train::RunEnd train_recipes(const RecipeRunsPlan& plan, const ContextPtr& context,
                            const train::TrainerOutput& output) {
  check_folder(plan.folder);
  check_recipes(plan, context);
  const std::vector<Cell> cells = cells_of(plan);
  std::vector<Progress> found;
  for (const Cell& cell : cells) found.push_back(examine(cell, context));
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const bool is_finished = found[i] == Progress::finished;
    *output.out << fmt::format("run {} of {}: {}, seed {}{}\n", i + 1, cells.size(),
                               cells[i].recipe->name, cells[i].seed,
                               is_finished ? " is finished already" : "")
                << std::flush;
    if (is_finished) continue;
    const train::RunEnd end = train_cell(cells[i], found[i], context, output);
    *output.out << std::endl;
    if (end != train::RunEnd::finished) return end;
  }
  return train::RunEnd::finished;
}

report::RecipeComparison write_comparison(const RecipeRunsPlan& plan) {
  std::vector<report::RecipeRuns> recipes;
  for (const RecipeChoice& recipe : plan.recipes) {
    report::RecipeRuns runs{recipe.name, {}};
    for (const std::int64_t seed : plan.seeds)
      runs.runs.push_back(report::read_run(run_path(plan, recipe, seed)));
    recipes.push_back(std::move(runs));
  }
  const report::RecipeComparison comparison = report::compare_recipes(recipes, plan.seeds);
  train::replace_file(plan.folder + "/compare.md", report::comparison_markdown(comparison));
  train::replace_file(plan.folder + "/compare.json", report::comparison_json(comparison));
  train::replace_file(plan.folder + "/compare.html", report::comparison_page(comparison));
  return comparison;
}

}  // namespace kitchen::analysis
