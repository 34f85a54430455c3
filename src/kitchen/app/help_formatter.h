#pragma once

#include <memory>

namespace CLI {
class App;
class FormatterBase;
}  // namespace CLI

namespace kitchen::app {

/// Help in two columns that wrap within 96 characters, with defaults and grouped flags.
std::shared_ptr<CLI::FormatterBase> make_help_formatter();

}  // namespace kitchen::app
