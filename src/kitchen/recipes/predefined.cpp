#include "kitchen/recipes/predefined.h"

#include "kitchen/base/rank_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace kitchen {

namespace {

constexpr std::int64_t kFirstUserNumber = 1000000000;

/// Recipes that the user registered on this rank.
struct UserRecipes {
  std::vector<std::shared_ptr<const QLinearParams>> linear;
};

template <class Params>
using Table = std::vector<std::shared_ptr<const Params>>;

Table<QLinearParams> all_linear_recipes() {
  Table<QLinearParams> all = predefined_linear_recipes();
  const Table<QLinearParams>& user = current_rank_state().slot<UserRecipes>().linear;
  all.insert(all.end(), user.begin(), user.end());
  return all;
}

template <class Params>
std::vector<std::string> names_of(const Table<Params>& table) {
  std::vector<std::string> names;
  for (const auto& params : table) names.push_back(params->name);
  return names;
}

template <class Params>
std::shared_ptr<const Params> find_name(const Table<Params>& table, const std::string& name,
                                        const char* kind) {
  for (const auto& params : table) {
    if (params->name == name) return params;
  }
  const std::vector<std::string> known = names_of(table);
  const std::vector<std::string> near = nearest_names(name, known);
  throw ValueError(fmt::format("unknown {} recipe \"{}\"; nearest: {}; known names: {}", kind, name,
                               join_names(near), join_names(known)));
}

/// "1 (bf16), 2 (fp8_cs)" in ascending order.
template <class Params>
std::string describe_numbers(const Table<Params>& table) {
  std::vector<std::pair<std::int64_t, std::string>> numbered;
  for (const auto& params : table) {
    if (params->number) numbered.emplace_back(*params->number, params->name);
  }
  std::sort(numbered.begin(), numbered.end());
  std::vector<std::string> texts;
  for (const auto& [number, name] : numbered) texts.push_back(fmt::format("{} ({})", number, name));
  return join_names(texts);
}

template <class Params>
std::shared_ptr<const Params> find_number(const Table<Params>& table, std::int64_t number,
                                          const char* kind, const char* by_name_type) {
  if (number <= 0) {
    throw ValueError(
        fmt::format("recipe_idx must be a positive integer, got {}; known {} numbers: {}", number,
                    kind, describe_numbers(table)));
  }
  for (const auto& params : table) {
    if (params->number == number) return params;
  }
  throw ValueError(fmt::format(
      "unknown {} recipe_idx {}; known numbers: {}; known names, for the type {}: {}", kind, number,
      describe_numbers(table), by_name_type, join_names(names_of(table))));
}

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

std::shared_ptr<const QLinearParams> get_qlinear_params_from_qat_params(std::int64_t recipe_idx) {
  return find_number(all_linear_recipes(), recipe_idx, "linear", "QLinearRecipe");
}

std::shared_ptr<const QAttentionParams> get_qattention_params_from_qat_params(
    std::int64_t recipe_idx) {
  return find_number(predefined_attention_recipes(), recipe_idx, "attention", "QAttentionRecipe");
}

std::shared_ptr<const QFlashAttentionParams> get_qfa_params_from_recipe_name(
    const std::string& recipe_name) {
  return find_name(predefined_flash_recipes(), recipe_name, "flash attention");
}

std::shared_ptr<const QLinearParams> get_qlinear_params_from_predefined(QuantizeRecipe recipe) {
  return find_name(predefined_linear_recipes(), lower_case(to_string(recipe)), "linear");
}

std::shared_ptr<const QAttentionParams> get_qattention_params_from_predefined(
    QuantizeRecipeAttnBMM recipe) {
  return find_name(predefined_attention_recipes(), lower_case(to_string(recipe)), "attention");
}

std::shared_ptr<const QLinearParams> get_qlinear_params_from_recipe_name(
    const std::string& recipe_name) {
  return find_name(all_linear_recipes(), recipe_name, "linear");
}

std::shared_ptr<const QAttentionParams> get_qattention_params_from_recipe_name(
    const std::string& recipe_name) {
  return find_name(predefined_attention_recipes(), recipe_name, "attention");
}

void register_recipe(const QLinearParams& description) {
  validate_q_linear_params(description);
  if (description.name.empty()) {
    throw ValueError("register_recipe: the description has no name; give it one to register it");
  }
  if (description.number && *description.number < kFirstUserNumber) {
    throw ValueError(
        fmt::format("register_recipe: number {} of {}, expected {} or more; smaller ones keep "
                    "their public meaning",
                    *description.number, description.name, kFirstUserNumber));
  }
  for (const auto& known : all_linear_recipes()) {
    if (known->name == description.name ||
        (description.number && known->number == description.number)) {
      throw ValueError(fmt::format("register_recipe: the name or number of {} is taken by {}",
                                   description.name, known->name));
    }
  }
  current_rank_state().slot<UserRecipes>().linear.push_back(
      std::make_shared<const QLinearParams>(description));
}

}  // namespace kitchen
