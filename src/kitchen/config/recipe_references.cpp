#include "kitchen/config/recipe_references.h"

#include "kitchen/base/error.h"
#include "kitchen/base/nearest_name.h"
#include "kitchen/config/glob_matcher.h"

#include <fmt/format.h>

#include <set>

namespace kitchen {

namespace {

/// The glob rules, with their places in the order. Other matchers tell nothing about what they
/// take.
std::vector<const GlobMatcher*> glob_matchers(const RecipeConfig& recipe) {
  std::vector<const GlobMatcher*> globs;
  for (const auto& matcher : recipe.matchers()) {
    if (const auto* glob = dynamic_cast<const GlobMatcher*>(matcher.get())) globs.push_back(glob);
  }
  return globs;
}

std::string label(const GlobMatcher& matcher) {
  return matcher.name.empty() ? matcher.repr() : matcher.name;
}

}  // namespace

void check_recipe_references(const RecipeConfig& recipe) {
  for (const GlobMatcher* matcher : glob_matchers(recipe)) {
    if (recipe.configs().count(matcher->config_key) > 0) continue;
    const std::vector<std::string> known = recipe.config_names();
    throw KeyError(fmt::format(
        "matcher {}{}: config \"{}\" is not in the recipe's configs; known names: {}. {}",
        label(*matcher), in_parentheses(matcher->location), matcher->config_key, join_names(known),
        did_you_mean(matcher->config_key, known)));
  }
}

std::vector<std::string> unreachable_matchers(const RecipeConfig& recipe) {
  const std::vector<const GlobMatcher*> globs = glob_matchers(recipe);
  std::vector<std::string> warnings;
  for (std::size_t later = 1; later < globs.size(); ++later) {
    for (std::size_t earlier = 0; earlier < later; ++earlier) {
      if (!globs[earlier]->hides(*globs[later])) continue;
      warnings.push_back(
          fmt::format("matcher {} can never match: the earlier matcher {} (pattern \"{}\") takes "
                      "every layer of "
                      "its pattern \"{}\"{}; put it first",
                      label(*globs[later]), label(*globs[earlier]), globs[earlier]->pattern,
                      globs[later]->pattern, in_parentheses(globs[later]->location)));
      break;
    }
  }
  return warnings;
}

std::vector<std::string> unused_configs(const RecipeConfig& recipe) {
  std::set<std::string> used;
  for (const GlobMatcher* matcher : glob_matchers(recipe)) used.insert(matcher->config_key);
  std::vector<std::string> warnings;
  // A matcher of another type may name any configuration.
  if (glob_matchers(recipe).size() != recipe.matchers().size()) return warnings;
  for (const auto& [name, config] : recipe.configs()) {
    if (used.count(name) > 0) continue;
    warnings.push_back(
        fmt::format("config {} is used by no matcher{}", name, in_parentheses(config.location())));
  }
  return warnings;
}

}  // namespace kitchen
