#include "kitchen/app/parse_error_text.h"

#include "kitchen/base/nearest_name.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>

namespace kitchen::app {

namespace {

bool is_flag(const std::string& argument) {
  return argument.size() > 1 && argument[0] == '-';
}

std::string without_value(const std::string& argument) {
  return argument.substr(0, argument.find('='));
}

/// The subcommand that was being parsed, and what to type for it: "kitchen recipes check".
struct ActiveCommand {
  const CLI::App* app;
  std::string path;
};

ActiveCommand active_command(const CLI::App& root) {
  ActiveCommand active{&root, root.get_name()};
  while (!active.app->get_subcommands().empty()) {
    active.app = active.app->get_subcommands().back();
    active.path += " " + active.app->get_name();
  }
  return active;
}

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(sub->get_name());
  }
  return names;
}

const CLI::Option* find_flag(const CLI::App& app, const std::string& flag) {
  const std::vector<const CLI::Option*> options = app.get_options();
  const auto found = std::find_if(options.begin(), options.end(), [&](const CLI::Option* option) {
    return is_flag(flag) && option->check_name(flag);
  });
  return found == options.end() ? nullptr : *found;
}

bool takes_no_value(const CLI::Option& option) {
  return option.get_items_expected_max() == 0;
}

std::string with_hint(std::string text, const std::string& hint) {
  return hint.empty() ? text : std::move(text) + "; " + hint;
}

/// A word that no flag took: the value of a flag that has none, a misspelt subcommand, or a stray.
std::string unexpected_word(const ActiveCommand& active, const std::string& word,
                            const std::vector<std::string>& arguments) {
  const auto place = std::find(arguments.begin(), arguments.end(), word);
  if (place != arguments.begin() && place != arguments.end()) {
    const std::string& before = *(place - 1);
    const CLI::Option* option = find_flag(*active.app, before);
    if (option != nullptr && takes_no_value(*option)) {
      const std::string hint = before == "--group-query-attention"
                                   ? fmt::format("use --num-query-groups {} beside it", word)
                                   : fmt::format("found '{}' after it", word);
      return fmt::format("{} takes no value; {}", before, hint);
    }
  }
  const std::vector<std::string> subcommands = subcommand_names(*active.app);
  if (!subcommands.empty()) {
    return with_hint(
        fmt::format("unknown subcommand '{}'; known are: {}", word, join_names(subcommands)),
        did_you_mean(word, subcommands));
  }
  return with_hint(fmt::format("unexpected argument '{}'", word),
                   did_you_mean("--" + word, flag_names(*active.app)));
}

std::string extras_text(const ActiveCommand& active, const CLI::App& root,
                        const std::vector<std::string>& arguments) {
  std::vector<std::string> extras = active.app->remaining();
  if (extras.empty()) extras = root.remaining(true);
  if (extras.empty()) return "an argument was not expected";
  const std::string first = without_value(extras.front());
  if (!is_flag(first)) return unexpected_word(active, extras.front(), arguments);
  return with_hint(fmt::format("unknown flag {}", first),
                   did_you_mean(first, flag_names(*active.app)));
}

/// The option that the parser's text speaks of, by its longest name.
const CLI::Option* option_in(const CLI::App& app, const std::string& text) {
  const CLI::Option* best = nullptr;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (text.find(name) == std::string::npos) continue;
    if (best == nullptr || name.size() > best->get_name().size()) best = option;
  }
  return best;
}

std::string expected_kind(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type == "INT" || type == "UINT") return "an integer";
  if (type == "FLOAT") return "a number";
  if (takes_no_value(option)) return "no value";
  return "a text";
}

std::string conversion_text(const CLI::Option& option, const std::string& parser_text) {
  const std::size_t equals = parser_text.rfind(" = ");
  const std::string found = equals == std::string::npos ? "" : parser_text.substr(equals + 3);
  return fmt::format("{} is '{}', expected {}", option.get_name(), found, expected_kind(option));
}

std::string missing_text(const ActiveCommand& active, const CLI::App& root,
                         const std::vector<std::string>& arguments, const CLI::Option* option) {
  if (option != nullptr) {
    return fmt::format("{} is missing: {}", option->get_name(), option->get_description());
  }
  const std::vector<std::string> extras = root.remaining(true);
  for (const std::string& extra : extras) {
    if (!is_flag(extra)) return unexpected_word(active, extra, arguments);
  }
  const std::string known = join_names(subcommand_names(*active.app));
  return fmt::format("a subcommand is missing after `{}`; known are: {}", active.path, known);
}

}  // namespace

std::string parse_error_text(const CLI::App& root, const CLI::ParseError& error,
                             const std::vector<std::string>& arguments) {
  const ActiveCommand active = active_command(root);
  const CLI::Option* option = option_in(*active.app, error.what());
  std::string text = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    text = extras_text(active, root, arguments);
  } else if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    text = missing_text(active, root, arguments, option);
  } else if (option != nullptr && dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {
    text = conversion_text(*option, error.what());
  } else if (option != nullptr && dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    text =
        option->count() > 1
            ? fmt::format("{} is given {} times; give it once", option->get_name(), option->count())
            : fmt::format("{} needs a value: {}", option->get_name(), expected_kind(*option));
  }
  return fmt::format("{}\nRun `{} --help` for all flags.", text, active.path);
}

}  // namespace kitchen::app
