#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kitchen {

/// Number of inserted, removed, replaced or swapped neighbouring characters between two texts.
int edit_distance(std::string_view a, std::string_view b);

/// Those of `known` that a typist may have meant by `text`: at most 3, nearest first; letter case
/// and the difference between '-' and '_' count little. Empty if none is near.
std::vector<std::string> nearest_names(std::string_view text,
                                       const std::vector<std::string>& known);

/// `did you mean "recipe_idx"?` for the nearest name, or the empty text.
std::string did_you_mean(std::string_view text, const std::vector<std::string>& known);

/// "a, b, c"; "none" for an empty list.
std::string join_names(const std::vector<std::string>& names);

}  // namespace kitchen
