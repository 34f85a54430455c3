#include "common/answer.h"
#include "common/lesson.h"

#include "kitchen/backends/available_backends.h"
#include "kitchen/base/device_error.h"
#include "kitchen/base/error.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <exception>
#include <iostream>
#include <string>

namespace kitchen::tutorials {
namespace {

struct Flags {
  std::string backend = "cpu";
  std::string folder;
  bool steps = false;
  std::size_t exercise = 0;
  std::string answer;
};

std::string backend_names() {
  std::string names;
  for (const AvailableBackend& backend : available_backends()) {
    names += (names.empty() ? "" : ", ") + backend.name;
  }
  return names;
}

void add_flags(CLI::App& app, Flags& flags, std::size_t num_exercises) {
  app.add_option("--backend", flags.backend, "Kernels to use: " + backend_names())
      ->capture_default_str();
  app.add_option("--output-dir", flags.folder, "Folder for results.json and the figures")
      ->capture_default_str();
  app.add_flag("--step", flags.steps, "Wait for Enter before each stage");
  auto* const exercise = app.add_option("--exercise", flags.exercise, "Number of an exercise")
                             ->check(CLI::Range(std::size_t{1}, num_exercises));
  app.add_option("--answer", flags.answer, "Your answer; without it the question is printed")
      ->needs(exercise);
}

ContextPtr context_of(const std::string& name) {
  for (const AvailableBackend& backend : available_backends()) {
    if (backend.name != name) continue;
    const std::string reason = backend.why_unusable();
    if (reason.empty()) return backend.make_context(0);
    throw DeviceError(fmt::format("--backend {}: {}; use --backend cpu", name, reason));
  }
  throw DeviceError(fmt::format("--backend {}: this build has the kernels of: {}; use one of them",
                                name, backend_names()));
}

int answer_exercise(const Exercise& exercise, const Flags& flags, const ContextPtr& context) {
  if (flags.answer.empty()) {
    std::cout << exercise.question << '\n';
    return 0;
  }
  const Verdict verdict = check_answer(flags.answer, exercise.answer(context));
  std::cout << verdict.text << '\n';
  if (!verdict.is_right) std::cout << "Hint: " << exercise.hint << '\n';
  return verdict.is_right ? 0 : 1;
}

/// Without more input, as in a script, the stages run through.
void wait_for_enter() {
  std::cout << "[Enter] " << std::flush;
  std::string line;
  std::getline(std::cin, line);
}

int run_stages(const std::string& name, const std::vector<Stage>& stages, const Flags& flags,
               const ContextPtr& context) {
  Lesson lesson(name, flags.backend, context, flags.folder);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const std::string title = fmt::format("{}. {}", i + 1, stages[i].title);
    if (flags.steps) wait_for_enter();
    lesson.print(title);
    stages[i].run(lesson);
    lesson.print("");
  }
  lesson.save();
  return 0;
}

}  // namespace

int run_tutorial(const std::string& name, const std::vector<Stage>& stages,
                 const std::vector<Exercise>& exercises, int argc, char** argv) {
  CLI::App app("Tutorial " + name, name);
  Flags flags;
  flags.folder = "runs/tutorials/" + name;
  add_flags(app, flags, exercises.size());
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    const ContextPtr context = context_of(flags.backend);
    set_default_context(context);
    if (flags.exercise > 0) return answer_exercise(exercises[flags.exercise - 1], flags, context);
    return run_stages(name, stages, flags, context);
  } catch (const DeviceError& error) {
    std::cerr << name << ": " << error.what() << '\n';
    return 3;
  } catch (const NotImplementedError& error) {
    std::cerr << name << ": " << error.what() << "; use --backend cpu\n";
    return 3;
  } catch (const std::exception& error) {
    std::cerr << name << ": " << error.what() << '\n';
    return 1;
  }
}

}  // namespace kitchen::tutorials
