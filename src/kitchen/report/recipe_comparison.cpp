#include "kitchen/report/recipe_comparison.h"

#include "kitchen/base/error.h"
#include "kitchen/report/report_numbers.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

namespace kitchen::report {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double final_loss(const RunSummary& run) {
  const MetricPoint* last = run.final_validation();
  return last == nullptr || !std::isfinite(*last->val_loss) ? kNaN : *last->val_loss;
}

std::optional<double> mean_sqnr(const std::vector<RunSummary>& runs) {
  double sum = 0.0;
  int count = 0;
  for (const RunSummary& run : runs) {
    for (const QuantizationError& error : run.quantization) {
      if (!error.sqnr_db) continue;
      sum += *error.sqnr_db;
      ++count;
    }
  }
  if (count == 0) return std::nullopt;
  return sum / count;
}

std::optional<double> median_speed(const std::vector<RunSummary>& runs) {
  RunSummary all;
  for (const RunSummary& run : runs) {
    all.metrics.insert(all.metrics.end(), run.metrics.begin(), run.metrics.end());
  }
  return median_of(all, &MetricPoint::tokens_per_s);
}

RecipeResult measure(const RecipeRuns& recipe) {
  RecipeResult result;
  result.name = recipe.name;
  for (const RunSummary& run : recipe.runs) result.losses.push_back(final_loss(run));
  const std::vector<double>& losses = result.losses;
  const bool is_whole =
      std::all_of(losses.begin(), losses.end(), [](double loss) { return std::isfinite(loss); });
  const auto [low, high] = std::minmax_element(losses.begin(), losses.end());
  result.mean = is_whole ? std::accumulate(losses.begin(), losses.end(), 0.0) /
                               static_cast<double>(losses.size())
                         : kNaN;
  result.spread = is_whole ? *high - *low : kNaN;
  result.sqnr_db = mean_sqnr(recipe.runs);
  result.tokens_per_s = median_speed(recipe.runs);
  return result;
}

Verdict judge(const RecipeResult& result, const RecipeResult& reference) {
  const double difference = result.mean - reference.mean;
  if (!std::isfinite(difference)) return Verdict::not_finite;
  if (result.losses.size() < 2) return Verdict::one_seed;
  if (std::fabs(difference) <= reference.spread) return Verdict::within_noise;
  return difference > 0.0 ? Verdict::worse : Verdict::better;
}

void check(const std::vector<RecipeRuns>& recipes, const std::vector<std::int64_t>& seeds) {
  if (recipes.size() < 2 || seeds.empty()) {
    throw ValueError(fmt::format(
        "compare_recipes: {} recipes and {} seeds, expected two recipes and one seed at least",
        recipes.size(), seeds.size()));
  }
  for (const RecipeRuns& recipe : recipes) {
    if (recipe.runs.size() == seeds.size()) continue;
    throw ValueError(
        fmt::format("compare_recipes: {} has {} runs, expected one for each of {} seeds",
                    recipe.name, recipe.runs.size(), seeds.size()));
  }
}

/// Settings that are equal in all runs, without those of folders and output.
std::vector<std::pair<std::string, std::string>> shared_settings(
    const std::vector<RecipeRuns>& recipes) {
  std::vector<std::pair<std::string, std::string>> shared = recipes[0].runs[0].settings;
  for (const RecipeRuns& recipe : recipes) {
    for (const RunSummary& run : recipe.runs) {
      const std::set<std::pair<std::string, std::string>> own(run.settings.begin(),
                                                              run.settings.end());
      shared.erase(std::remove_if(shared.begin(), shared.end(),
                                  [&](const auto& setting) {
                                    return own.count(setting) == 0 || setting.second == "null" ||
                                           setting.first.rfind("run.", 0) == 0;
                                  }),
                   shared.end());
    }
  }
  return shared;
}

/// JSON has no number for what is not finite.
nlohmann::ordered_json number_or_null(std::optional<double> value) {
  if (!value || !std::isfinite(*value)) return nullptr;
  return *value;
}

}  // namespace

std::string to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::reference:
      return "reference";
    case Verdict::within_noise:
      return "within the seeds' noise";
    case Verdict::worse:
      return "worse, beyond the seeds' noise";
    case Verdict::better:
      return "better, beyond the seeds' noise";
    case Verdict::one_seed:
      return "unknown: one seed shows no noise";
    case Verdict::not_finite:
      return "unknown: a loss is not finite";
  }
  throw AssertionError("to_string(Verdict): unknown value");
}

RecipeComparison compare_recipes(const std::vector<RecipeRuns>& recipes,
                                 const std::vector<std::int64_t>& seeds) {
  check(recipes, seeds);
  RecipeComparison comparison;
  comparison.seeds = seeds;
  comparison.settings = shared_settings(recipes);
  for (const RecipeRuns& runs : recipes) comparison.recipes.push_back(measure(runs));
  const RecipeResult reference = comparison.recipes[0];
  for (std::size_t i = 1; i < comparison.recipes.size(); ++i) {
    RecipeResult& result = comparison.recipes[i];
    result.verdict = judge(result, reference);
    if (result.verdict != Verdict::not_finite)
      result.difference_percent = relative_percent(result.mean, reference.mean);
    for (std::size_t k = 0; k < seeds.size(); ++k) {
      if (result.losses[k] > reference.losses[k]) ++result.seeds_above;
    }
  }
  return comparison;
}

std::string comparison_headline(const RecipeComparison& comparison) {
  std::string text;
  for (const Verdict verdict : {Verdict::worse, Verdict::better, Verdict::within_noise,
                                Verdict::one_seed, Verdict::not_finite}) {
    std::string names;
    for (const RecipeResult& result : comparison.recipes) {
      if (result.verdict != verdict) continue;
      names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", result.name,
                           percent_text(result.difference_percent));
    }
    if (names.empty()) continue;
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", to_string(verdict), names);
  }
  return fmt::format("Against {} – {}.", comparison.recipes[0].name, text);
}

std::vector<std::vector<std::string>> comparison_table(const RecipeComparison& comparison) {
  std::vector<std::string> header = {"recipe"};
  for (const std::int64_t seed : comparison.seeds) header.push_back(fmt::format("seed {}", seed));
  for (const char* name :
       {"mean", "spread", "difference", "seeds above", "SQNR (dB)", "tokens/s", "verdict"}) {
    header.emplace_back(name);
  }
  std::vector<std::vector<std::string>> rows = {header};
  for (const RecipeResult& result : comparison.recipes) {
    const bool is_reference = result.verdict == Verdict::reference;
    std::vector<std::string> row = {result.name};
    for (const double loss : result.losses) row.push_back(number_text(loss, 4));
    row.push_back(number_text(result.mean, 4));
    row.push_back(number_text(result.spread, 4));
    row.push_back(percent_text(result.difference_percent));
    row.push_back(is_reference ? "–"
                               : fmt::format("{} of {}", result.seeds_above, result.losses.size()));
    row.push_back(number_text(result.sqnr_db, 1));
    row.push_back(number_text(result.tokens_per_s, 0));
    row.push_back(to_string(result.verdict));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string comparison_markdown(const RecipeComparison& comparison) {
  const std::vector<std::vector<std::string>> rows = comparison_table(comparison);
  std::string text = "Validation loss in nats a token after training, by recipe and seed.\n\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::string cell : rows[i]) {
      for (std::size_t at = cell.find('|'); at != std::string::npos; at = cell.find('|', at + 2))
        cell.insert(at, "\\");
      text += "| " + cell + ' ';
    }
    text += "|\n";
    if (i > 0) continue;
    for (std::size_t column = 0; column < rows[0].size(); ++column) {
      text += column == 0 || column + 1 == rows[0].size() ? "|---" : "|---:";
    }
    text += "|\n";
  }
  return text + "\n" + comparison_headline(comparison) + "\n";
}

std::string comparison_json(const RecipeComparison& comparison) {
  nlohmann::ordered_json root;
  root["seeds"] = comparison.seeds;
  root["settings"] = nlohmann::ordered_json::object();
  for (const auto& [key, value] : comparison.settings) root["settings"][key] = value;
  root["recipes"] = nlohmann::ordered_json::array();
  for (const RecipeResult& result : comparison.recipes) {
    nlohmann::ordered_json losses = nlohmann::ordered_json::array();
    for (const double loss : result.losses) losses.push_back(number_or_null(loss));
    root["recipes"].push_back({{"recipe", result.name},
                               {"val_loss", losses},
                               {"mean", number_or_null(result.mean)},
                               {"spread", number_or_null(result.spread)},
                               {"difference_percent", number_or_null(result.difference_percent)},
                               {"seeds_above", result.seeds_above},
                               {"sqnr_db", number_or_null(result.sqnr_db)},
                               {"tokens_per_s", number_or_null(result.tokens_per_s)},
                               {"verdict", to_string(result.verdict)}});
  }
  return root.dump(2) + "\n";
}

}  // namespace kitchen::report
