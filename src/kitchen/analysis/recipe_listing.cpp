#include "kitchen/analysis/recipe_listing.h"

#include "kitchen/analysis/recipe_explanation.h"
#include "kitchen/analysis/text_table.h"
#include "kitchen/base/error.h"
#include "kitchen/base/nearest_name.h"
#include "kitchen/config/recipe_config.h"
#include "kitchen/extension/kitchen_quantization_params.h"
#include "kitchen/recipes/predefined.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

namespace kitchen::analysis {

namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string number_text(const std::optional<std::int64_t>& number) {
  return number ? std::to_string(*number) : "-";
}

std::string linear_table() {
  Rows rows{{"number", "name", "evidence", "x", "w", "dy"}};
  for (const auto& recipe : predefined_linear_recipes()) {
    rows.push_back({number_text(recipe->number), recipe->name, to_string(recipe->evidence),
                    short_operand(recipe->x_params), short_operand(recipe->w_params),
                    short_operand(recipe->g_params)});
  }
  return format_table(rows, "  ");
}

std::string attention_table() {
  Rows rows{{"number", "name", "evidence", "q, k, p, v", "dS, dO"}};
  for (const auto& recipe : predefined_attention_recipes()) {
    rows.push_back({number_text(recipe->number), recipe->name, to_string(recipe->evidence),
                    short_operand(recipe->quantizer_bmm1->operand()),
                    short_operand(recipe->quantizer_bmm1->gradient())});
  }
  return format_table(rows, "  ");
}

std::string flash_table() {
  Rows rows{{"number", "name", "evidence", "QK", "PV", "exponential"}};
  for (const auto& recipe : predefined_flash_recipes()) {
    rows.push_back({"-", recipe->name, to_string(recipe->evidence), recipe->qk_dot_precisions,
                    recipe->pv_dot_precisions,
                    recipe->use_natural_transcendental_func ? "exp" : "exp2"});
  }
  return format_table(rows, "  ");
}

std::optional<std::int64_t> number_of(const std::string& text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return number;
}

/// The recipe's own name, or its number where the user asked by number.
template <class Params>
bool is_asked_for(const Params& recipe, const std::string& text) {
  if (recipe.name == text) return true;
  if constexpr (std::is_same_v<Params, QFlashAttentionParams>) {
    return false;
  } else {
    const std::optional<std::int64_t> number = number_of(text);
    return number && recipe.number == number;
  }
}

[[noreturn]] void refuse(const std::string& text) {
  std::vector<std::string> names;
  std::vector<std::int64_t> numbers;
  const auto collect = [&](const auto& table) {
    for (const auto& recipe : table) {
      if (std::find(names.begin(), names.end(), recipe->name) == names.end()) {
        names.push_back(recipe->name);
      }
    }
  };
  const auto collect_numbers = [&](const auto& table) {
    for (const auto& recipe : table) {
      if (recipe->number) numbers.push_back(*recipe->number);
    }
  };
  collect(predefined_linear_recipes());
  collect(predefined_attention_recipes());
  collect(predefined_flash_recipes());
  collect_numbers(predefined_linear_recipes());
  collect_numbers(predefined_attention_recipes());
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::vector<std::string> number_texts;
  for (const std::int64_t number : numbers) number_texts.push_back(std::to_string(number));
  std::string hint = did_you_mean(text, names);
  if (!hint.empty()) hint += " ";
  throw ValueError(
      fmt::format("no table knows the recipe \"{}\". {}Known numbers: {}; known names: {}", text,
                  hint, join_names(number_texts), join_names(names)));
}

}  // namespace

std::string list_recipes() {
  return "Linear layers (QLinearParams by number, QLinearRecipe by name)\n" + linear_table() +
         "\nUnfused attention (QAttentionParams by number, QAttentionRecipe by name)\n" +
         attention_table() + "\nFlash attention (QFlashAttentionParams by name)\n" + flash_table() +
         "\nevidence: public = the number or name stands in a public vendor source; inferred = the "
         "meaning\n"
         "follows from a public neighbour; ours = a name of this project, without a number.\n"
         "`kitchen recipes explain <number or name>` tells what a recipe does.\n";
}

std::string explain_recipe(const std::string& recipe) {
  std::string text;
  const auto add_found = [&](const auto& table) {
    for (const auto& params : table) {
      if (is_asked_for(*params, recipe)) text += (text.empty() ? "" : "\n") + explain(*params);
    }
  };
  add_found(predefined_linear_recipes());
  add_found(predefined_attention_recipes());
  add_found(predefined_flash_recipes());
  if (text.empty()) refuse(recipe);
  return text;
}

std::string explain_recipe_file(const std::string& path) {
  const RecipeConfig recipe = RecipeConfig::from_yaml_file(path);
  std::string text;
  for (const auto& [name, config] : recipe.configs()) {
    const auto params = KitchenQuantizationParams::parse_from_config(
        QuantizationConfig(config, MatchContext{"", std::nullopt}, name));
    text += fmt::format("{}config {}\n", text.empty() ? "" : "\n", name);
    if (params.qlinear_params) text += explain(*params.qlinear_params);
    if (params.qattention_params) text += explain(*params.qattention_params);
    if (params.qfa_params) text += explain(*params.qfa_params);
  }
  return text;
}

}  // namespace kitchen::analysis
