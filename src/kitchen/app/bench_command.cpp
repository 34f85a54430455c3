#include "kitchen/analysis/kernel_benchmark.h"
#include "kitchen/analysis/quantize_benchmark.h"
#include "kitchen/analysis/train_benchmark.h"
#include "kitchen/app/commands.h"
#include "kitchen/app/device.h"
#include "kitchen/app/exit_status.h"
#include "kitchen/app/setting_flags.h"
#include "kitchen/train/durable_file.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <vector>

namespace kitchen::app {

namespace {

struct TrainBenchFlags {
  SettingFlags settings{analysis::gpt2_124m_settings()};
  analysis::TrainBenchmarkOptions options;
  std::string json;
};

struct KernelBenchFlags {
  analysis::Repeats repeats;
  std::int64_t rows = 16384;
  std::int64_t cols = 1024;
  std::vector<std::string> shapes{"256x256x256", "256x768x3072", "1024x1024x1024"};
  std::int64_t num_threads = 1;
  std::string json;
};

int finish(const std::string& text, const std::string& json, const std::string& path) {
  fmt::print("{}", text);
  if (!path.empty()) train::replace_file(path, json);
  return kDone;
}

int bench_training(const TrainBenchFlags& flags) {
  analysis::TrainBenchmarkOptions options = flags.options;
  options.settings = flags.settings.resolve();
  const ContextPtr context = make_context(options.settings.backend, options.settings.num_threads);
  const analysis::TrainBenchmark result = analysis::benchmark_training(options, context);
  return finish(to_text(result), to_json(result), flags.json);
}

int bench_codec(const KernelBenchFlags& flags) {
  const auto rows = analysis::benchmark_codec(make_context("cpu", flags.num_threads), flags.rows,
                                              flags.cols, flags.repeats);
  return finish(to_text(rows), to_json(rows), flags.json);
}

int bench_quantize(const KernelBenchFlags& flags) {
  const auto rows = analysis::benchmark_quantize(make_context("cpu", flags.num_threads), flags.rows,
                                                 flags.cols, flags.repeats);
  return finish(to_text(rows), to_json(rows), flags.json);
}

int bench_gemm(const KernelBenchFlags& flags) {
  std::vector<analysis::GemmShape> shapes;
  for (const std::string& text : flags.shapes) shapes.push_back(analysis::parse_gemm_shape(text));
  const auto rows =
      analysis::benchmark_gemm(make_context("cpu", flags.num_threads), shapes, flags.repeats);
  return finish(to_text(rows), to_json(rows), flags.json);
}

void add_json(CLI::App& command, std::string& path) {
  command.add_option("--json", path, "also write the measurements to this file");
}

void add_train_cpu(CLI::App& bench, Action& action) {
  auto flags = std::make_shared<TrainBenchFlags>();
  CLI::App* command = bench.add_subcommand(
      "train-cpu",
      "training steps on random tokens; by default GPT-2 124M, 4 x 64 tokens, float32");
  command
      ->add_option("--warm-up-steps", flags->options.warm_up_steps, "steps before the timed ones")
      ->capture_default_str();
  command->add_option("--steps", flags->options.steps, "timed steps of a round")
      ->capture_default_str();
  command->add_option("--rounds", flags->options.rounds, "rounds; in each, the peer follows")
      ->capture_default_str();
  command->add_option(
      "--peer", flags->options.peer,
      "command of another program, which takes turns with this one in the same sitting");
  command
      ->add_option(
          "--peer-pattern", flags->options.peer_pattern,
          "regular expression whose group holds a step's milliseconds in a line of the peer")
      ->capture_default_str();
  add_json(*command, flags->json);
  flags->settings.declare(*command);
  command->callback([flags, &action] { action = [flags] { return bench_training(*flags); }; });
}

CLI::App* add_kernel_bench(CLI::App& bench, Action& action, const char* name, const char* help,
                           const std::shared_ptr<KernelBenchFlags>& flags,
                           int (*run)(const KernelBenchFlags&)) {
  CLI::App* command = bench.add_subcommand(name, help);
  command->add_option("--warm-up", flags->repeats.warm_up, "repeats before the timed ones")
      ->capture_default_str();
  command->add_option("--repeats", flags->repeats.timed, "timed repeats")->capture_default_str();
  command->add_option("--num-threads", flags->num_threads, "OpenMP threads; 0 = all cores")
      ->capture_default_str();
  add_json(*command, flags->json);
  command->callback([flags, run, &action] { action = [flags, run] { return run(*flags); }; });
  return command;
}

void add_matrix_size(CLI::App& command, KernelBenchFlags& flags) {
  command.add_option("--rows", flags.rows, "rows of the matrix")->capture_default_str();
  command.add_option("--cols", flags.cols, "columns of the matrix")->capture_default_str();
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  CLI::App* bench = app.add_subcommand("bench", "measure training steps, codecs and products");
  bench->require_subcommand(1);
  add_train_cpu(*bench, action);

  auto codec = std::make_shared<KernelBenchFlags>();
  CLI::App* codec_command = add_kernel_bench(
      *bench, action, "codec", "quantize and decode a float32 matrix, on one core by default",
      codec, &bench_codec);
  add_matrix_size(*codec_command, *codec);

  auto quantize = std::make_shared<KernelBenchFlags>();
  quantize->num_threads = 0;
  quantize->rows = quantize->cols = 4096;
  quantize->repeats.timed = 21;
  CLI::App* quantize_command = add_kernel_bench(
      *bench, action, "quantize", "quantize a bfloat16 matrix, beside a copy of the same matrix",
      quantize, &bench_quantize);
  add_matrix_size(*quantize_command, *quantize);

  auto gemm = std::make_shared<KernelBenchFlags>();
  gemm->num_threads = 0;
  CLI::App* gemm_command =
      add_kernel_bench(*bench, action, "gemm", "the library's products beside a plain sgemm call",
                       gemm, &bench_gemm);
  gemm_command
      ->add_option("--shape", gemm->shapes,
                   "MxNxK of d[m,n] = a[m,k] b[n,k]^T; several are allowed")
      ->capture_default_str();
}

}  // namespace kitchen::app
