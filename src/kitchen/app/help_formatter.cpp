#include "kitchen/app/help_formatter.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace kitchen::app {

namespace {

constexpr std::size_t kWidth = 96;
constexpr std::size_t kTextColumn = 40;

/// `text` from column kTextColumn on, broken between words.
std::string wrap(const std::string& head, const std::string& text) {
  const std::string margin(kTextColumn, ' ');
  std::string out = head.size() + 1 < kTextColumn ? fmt::format("{:<{}}", head, kTextColumn)
                                                  : head + "\n" + margin;
  std::istringstream words(text);
  std::string word;
  std::size_t column = kTextColumn;
  while (words >> word) {
    if (column > kTextColumn && column + 1 + word.size() > kWidth) {
      out += "\n" + margin;
      column = kTextColumn;
    }
    if (column > kTextColumn) {
      out += " ";
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out + "\n";
}

std::string value_label(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return "";
  const std::string type = option.get_type_name();
  if (type == "INT" || type == "UINT") return " N";
  if (type == "FLOAT") return " X";
  return " " + type;
}

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    const std::string name = option->get_name(is_positional, !is_positional);
    std::string text = option->get_description();
    if (option->get_required()) text += " (required)";
    const std::string standard = option->get_default_str();
    if (!standard.empty() && option->get_items_expected_max() != 0) text += " [" + standard + "]";
    return wrap("  " + name + (is_positional ? "" : value_label(*option)), text);
  }

  /// Without the blank line that the base class puts before a group: make_groups ends each with
  /// one.
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    const std::string text =
        CLI::Formatter::make_group(std::move(group), is_positional, std::move(options));
    return is_positional ? text + "\n" : text.substr(1);
  }

  std::string make_usage(const CLI::App* app, std::string name) const override {
    return CLI::Formatter::make_usage(app, std::move(name)) + "\n";
  }

  std::string make_subcommand(const CLI::App* sub) const override {
    return wrap("  " + sub->get_name(), sub->get_description());
  }

  std::string make_description(const CLI::App* app) const override {
    return app->get_description() + "\n";
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> make_help_formatter() {
  return std::make_shared<HelpFormatter>();
}

}  // namespace kitchen::app
