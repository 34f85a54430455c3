#include "kitchen/app/commands.h"
#include "kitchen/app/device.h"
#include "kitchen/app/exit_status.h"
#include "kitchen/app/setting_flags.h"
#include "kitchen/base/error.h"
#include "kitchen/base/rank_state.h"
#include "kitchen/parallel/process_group_collection.h"
#include "kitchen/parallel/run_ranks.h"
#include "kitchen/train/model_factory.h"
#include "kitchen/train/parallel_settings.h"
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

/// Every rank trains on a thread of its own; how it ended for rank 0.
train::RunEnd train_on_threads(const train::TrainSettings& settings,
                               const train::TrainerOutput& output) {
  // Here a refusal is one message, not one a rank.
  train::validate(settings);
  (void)train::make_transformer_config(settings);
  parallel::RunRanksOptions options;
  options.make_context = [&](int) { return make_context(settings.backend, settings.num_threads); };
  train::RunEnd end = train::RunEnd::finished;
  parallel::run_ranks(
      static_cast<int>(settings.ranks),
      [&] {
        initialize_model_parallel(train::rank_grid(settings).sizes());
        train::Trainer trainer(settings, default_context(), output);
        const train::RunEnd own = run_to_end(trainer);
        if (current_rank_state().rank() == 0) end = own;
      },
      options);
  return end;
}

train::RunEnd train_alone(const train::TrainSettings& settings,
                          const train::TrainerOutput& output) {
  train::Trainer trainer(settings, make_context(settings.backend, settings.num_threads), output);
  return run_to_end(trainer);
}

int train_run(const SettingFlags& flags) {
  const train::TrainSettings settings = flags.resolve();
  const train::TrainerOutput output{&std::cout, isatty(STDOUT_FILENO) == 1,
                                    train::terminal_width(STDOUT_FILENO)};
  switch (settings.ranks > 1 ? train_on_threads(settings, output) : train_alone(settings, output)) {
    case train::RunEnd::interrupted:
      return kInterrupted;
    case train::RunEnd::finished:
    case train::RunEnd::exit_interval:
    case train::RunEnd::terminated:
      return kDone;
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
