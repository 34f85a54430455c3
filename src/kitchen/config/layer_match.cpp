#include "kitchen/config/layer_match.h"

#include "kitchen/config/glob_matcher.h"

#include <fmt/format.h>

#include <algorithm>

namespace kitchen {

namespace {

LayerMatch match_layer(const RecipeConfig& recipe, const std::string& module_path) {
  const MatchContext context{module_path, layer_number_of(module_path)};
  for (const auto& matcher : recipe.matchers()) {
    const auto key = matcher->match(context);
    if (!key) continue;
    const auto* glob = dynamic_cast<const GlobMatcher*>(matcher.get());
    const bool has_name = glob != nullptr && !glob->name.empty();
    return {module_path, has_name ? glob->name : matcher->repr(), *key};
  }
  return {module_path, {}, {}};
}

}  // namespace

std::vector<LayerMatch> match_layers(const RecipeConfig& recipe,
                                     const std::vector<std::string>& module_paths) {
  std::vector<LayerMatch> matches;
  matches.reserve(module_paths.size());
  for (const std::string& path : module_paths) matches.push_back(match_layer(recipe, path));
  return matches;
}

std::string to_string(const std::vector<LayerMatch>& matches) {
  std::size_t path_width = 0;
  std::size_t matcher_width = 0;
  for (const LayerMatch& match : matches) {
    path_width = std::max(path_width, match.module_path.size());
    matcher_width = std::max(matcher_width, match.matcher.size());
  }
  std::string out;
  for (const LayerMatch& match : matches) {
    if (match.matcher.empty()) {
      out += fmt::format("{:<{}}  no rule\n", match.module_path, path_width);
    } else {
      out += fmt::format("{:<{}}  {:<{}}  {}\n", match.module_path, path_width, match.matcher,
                         matcher_width, match.config_key);
    }
  }
  return out;
}

}  // namespace kitchen
