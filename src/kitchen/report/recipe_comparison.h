#pragma once

#include "kitchen/report/run_summary.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// What runs of one model under several recipes and the same seeds say about the recipes.
namespace kitchen::report {

/// The runs of one recipe, one a seed, in the order of the seeds.
struct RecipeRuns {
  std::string name;
  std::vector<RunSummary> runs;
};

/// Whether a recipe's mean loss is apart from the reference by more than seeds alone explain.
enum class Verdict {
  reference,     ///< the first recipe
  within_noise,  ///< |difference of means| <= spread of the reference
  worse,         ///< mean loss higher by more than that
  better,        ///< mean loss lower by more than that
  one_seed,      ///< no noise was measured
  not_finite,    ///< a loss of the recipe or of the reference is missing, NaN or infinite
};

/// Plain text, such as "within the seeds' noise".
std::string to_string(Verdict verdict);

/// One recipe. Losses are the last validation losses, in nats a token.
struct RecipeResult {
  std::string name;
  std::vector<double> losses;                ///< one a seed; NaN where missing or not finite
  double mean = 0.0;                         ///< NaN if a loss is
  double spread = 0.0;                       ///< largest minus smallest loss; NaN if a loss is
  std::optional<double> difference_percent;  ///< of the mean to the first recipe's
  int seeds_above = 0;            ///< with the first recipe's run of the same seed below this one
  std::optional<double> sqnr_db;  ///< mean over operand uses and runs, where measured
  std::optional<double> tokens_per_s;  ///< median over the logged intervals of all runs
  Verdict verdict = Verdict::reference;
};

struct RecipeComparison {
  std::vector<std::int64_t> seeds;
  std::vector<RecipeResult> recipes;  ///< the first is the reference
  /// What all runs share, by setting, for the reader.
  std::vector<std::pair<std::string, std::string>> settings;
};

/// @throws ValueError unless there are two recipes or more, each with one run a seed.
RecipeComparison compare_recipes(const std::vector<RecipeRuns>& recipes,
                                 const std::vector<std::int64_t>& seeds);

/// One sentence: the recipes by verdict, those that are apart from the reference first. Plain text.
std::string comparison_headline(const RecipeComparison& comparison);

/// Column names and one row of text a recipe; the one content of all tables.
std::vector<std::vector<std::string>> comparison_table(const RecipeComparison& comparison);

std::string comparison_markdown(const RecipeComparison& comparison);
/// An indented JSON object: seeds, settings, recipes. Values that are absent or not finite are
/// null.
std::string comparison_json(const RecipeComparison& comparison);
/// A page that stands alone: dot plot, table, how to judge, settings.
std::string comparison_page(const RecipeComparison& comparison);

}  // namespace kitchen::report
