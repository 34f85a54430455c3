#pragma once

#include <string>

namespace kitchen::analysis {

/// The three tables of predefined recipes: number, name, where the meaning comes from, and one line
/// of content.
std::string list_recipes();

/// What a recipe does, for each table that knows it: operands, products, bits an element, hardware,
/// dtypes.
///
/// @param recipe a number such as "2" or a name such as "fp8_cs".
/// @throws ValueError naming the text, the nearest and all known names if no table knows it.
std::string explain_recipe(const std::string& recipe);

/// The same for each configuration of a YAML recipe file, descriptions of the user's own included.
/// @throws what loading the file and parsing a configuration throw, with file and line.
std::string explain_recipe_file(const std::string& path);

}  // namespace kitchen::analysis
