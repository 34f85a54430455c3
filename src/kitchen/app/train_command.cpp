#include "kitchen/app/commands.h"
#include "kitchen/app/device.h"
#include "kitchen/app/exit_status.h"
#include "kitchen/app/setting_flags.h"
#include "kitchen/base/error.h"
#include "kitchen/train/progress.h"
#include "kitchen/train/trainer.h"

#include <CLI/CLI.hpp>

#include <unistd.h>

#include <iostream>
#include <memory>

namespace kitchen::app {

namespace {

/// Once the training runs, a file that cannot be written is a failure and no longer bad input.
train::RunEnd run_to_end(train::Trainer& trainer) {
  try {
    return trainer.run();
  } catch (const IOError& error) {
    throw RuntimeError(error.what());
  }
}

int train_run(const SettingFlags& flags) {
  const train::TrainSettings settings = flags.resolve();
  const ContextPtr context = make_context(settings.backend, settings.num_threads);
  const train::TrainerOutput output{&std::cout, isatty(STDOUT_FILENO) == 1,
                                    train::terminal_width(STDOUT_FILENO)};
  train::Trainer trainer(settings, context, output);
  switch (run_to_end(trainer)) {
    case train::RunEnd::interrupted: return kInterrupted;
    case train::RunEnd::finished:
    case train::RunEnd::exit_interval:
    case train::RunEnd::terminated: return kDone;
  }
  return kDone;
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  auto flags = std::make_shared<SettingFlags>();
  CLI::App* command = app.add_subcommand("train", "train a GPT on a text file under a recipe");
  flags->declare(*command);
  command->callback([flags, &action] { action = [flags] { return train_run(*flags); }; });
}

}  // namespace kitchen::app
