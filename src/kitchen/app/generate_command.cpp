#include "kitchen/app/commands.h"
#include "kitchen/app/device.h"
#include "kitchen/app/exit_status.h"
#include "kitchen/train/byte_tokenizer.h"
#include "kitchen/train/generate.h"
#include "kitchen/train/load_run.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>
#include <string>

namespace kitchen::app {

namespace {

struct GenerateFlags {
  std::string run_dir;
  std::string prompt = "In the beginning";
  std::string backend = "auto";
  train::GenerateOptions options;
};

int generate_text(const GenerateFlags& flags) {
  set_default_context(make_context(flags.backend, 0));
  const std::shared_ptr<GPTModel> model = train::load_run_model(flags.run_dir);
  const train::ByteTokenizer tokenizer;
  const std::vector<std::int64_t> tokens =
      train::generate(*model, tokenizer.encode(flags.prompt), flags.options);
  fmt::print("{}{}\n", flags.prompt, tokenizer.decode(tokens));
  return kDone;
}

}  // namespace

void add_generate(CLI::App& app, Action& action) {
  auto flags = std::make_shared<GenerateFlags>();
  CLI::App* command = app.add_subcommand("generate", "continue a text with the model of a run folder");
  command->add_option("--run-dir", flags->run_dir, "run folder with a checkpoint")->required();
  command->add_option("--prompt", flags->prompt, "text to continue")->capture_default_str();
  command->add_option("--num-tokens", flags->options.num_tokens, "tokens to make")->capture_default_str();
  command->add_option("--temperature", flags->options.temperature, "0 takes the most likely token")
      ->capture_default_str();
  command->add_option("--seed", flags->options.seed, "of the draw")->capture_default_str();
  command->add_option("--backend", flags->backend, "auto, cpu or cuda")->capture_default_str();
  command->callback([flags, &action] { action = [flags] { return generate_text(*flags); }; });
}

}  // namespace kitchen::app
