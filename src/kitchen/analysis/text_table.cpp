#include "kitchen/analysis/text_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace kitchen::analysis {

namespace {

std::string format_row(const std::vector<std::string>& row, const std::vector<std::size_t>& widths,
                       const std::string& indent) {
  std::string line = indent;
  for (std::size_t i = 0; i < row.size(); ++i) {
    line += fmt::format("{:<{}}{}", row[i], widths[i], i + 1 < row.size() ? "  " : "");
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

std::string format_table(const std::vector<std::vector<std::string>>& rows,
                         const std::string& indent) {
  std::vector<std::size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::vector<std::string> rule;
  for (const std::size_t width : widths) rule.emplace_back(width, '-');
  std::string text;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += format_row(rows[i], widths, indent);
    if (i == 0) text += format_row(rule, widths, indent);
  }
  return text;
}

}  // namespace kitchen::analysis
