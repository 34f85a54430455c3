#pragma once

#include "kitchen/base/context.h"
#include "kitchen/report/recipe_comparison.h"
#include "kitchen/train/train_settings.h"
#include "kitchen/train/trainer.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kitchen::analysis {

/// A recipe of a comparison: a predefined one by its name, or a YAML file.
struct RecipeChoice {
  std::string name;  ///< of folders, tables and pictures
  std::optional<std::string>
      file;  ///< else `name` is that of a predefined recipe for linear layers
};

/// Turns numbers, names and files into choices with distinct names; a file is called by its stem.
/// @throws ValueError for an unknown recipe (naming the nearest), a name that comes twice, or fewer
/// than two recipes.
std::vector<RecipeChoice> choose_recipes(const std::vector<std::string>& recipes,
                                         const std::vector<std::string>& files);

/// Seeds from their texts. @throws ValueError naming one that is no number from 0 on or comes
/// twice.
std::vector<std::int64_t> parse_seeds(const std::vector<std::string>& texts);

/// The same model under each recipe, once a seed.
struct RecipeRunsPlan {
  std::vector<RecipeChoice> recipes;  ///< the first is the reference
  std::vector<std::int64_t> seeds;
  train::TrainSettings settings;  ///< without recipe, seed and run folder
  std::string folder;             ///< receives one run folder a recipe and seed
};

/// Trains what `plan.folder` does not hold yet, one run after the other: finished runs count as
/// they are, unfinished ones go on from their checkpoint, or start over if they have none. All
/// recipes, and all runs found, are checked before work starts.
///
/// @returns how the last run ended; anything but RunEnd::finished means that runs are missing.
/// @throws ValueError if the folder holds something else or runs with other settings, saying which;
///         what Trainer throws, with the run that it happened in.
train::RunEnd train_recipes(const RecipeRunsPlan& plan, const ContextPtr& context,
                            const train::TrainerOutput& output);

/// Reads the finished runs, compares them and writes compare.md, compare.json and compare.html into
/// `plan.folder`.
report::RecipeComparison write_comparison(const RecipeRunsPlan& plan);

}  // namespace kitchen::analysis
