#pragma once

#include <string>
#include <vector>

namespace kitchen::analysis {

/// Rows of text as lines whose columns are padded to equal width, two spaces apart. The first row
/// is a heading, underlined by dashes. Rows may be shorter than the heading.
std::string format_table(const std::vector<std::vector<std::string>>& rows,
                         const std::string& indent = "");

}  // namespace kitchen::analysis
