#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace kitchen::app {

/// Runs the subcommand that was parsed; set by the subcommand's callback. @returns the exit status.
using Action = std::function<int()>;

// One function a subcommand: declares flags on `app` and leaves what to do in `action`.
void add_train(CLI::App& app, Action& action);
void add_generate(CLI::App& app, Action& action);
void add_recipes(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);

/// The subcommand `compare` of `recipes`.
void add_recipes_compare(CLI::App& recipes, Action& action);

}  // namespace kitchen::app
