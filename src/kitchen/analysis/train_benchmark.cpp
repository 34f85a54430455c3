#include "kitchen/analysis/train_benchmark.h"

#include "kitchen/analysis/peer_program.h"
#include "kitchen/analysis/text_table.h"
#include "kitchen/analysis/timing.h"
#include "kitchen/base/error.h"
#include "kitchen/base/rng.h"
#include "kitchen/parallel/rng_tracker.h"
#include "kitchen/train/batch_sizes.h"
#include "kitchen/train/model_factory.h"
#include "kitchen/train/training_step.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>

namespace kitchen::analysis {

namespace {

using Clock = std::chrono::steady_clock;

Tensor random_tokens(const ContextPtr& context, const train::TrainSettings& s, std::uint64_t seed) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(s.micro_batch_size * s.seq_length));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] =
        static_cast<std::int64_t>(splitmix64(seed + i) % static_cast<std::uint64_t>(s.vocab_size));
  }
  return Tensor::from_vector(context, {s.micro_batch_size, s.seq_length}, ids);
}

std::vector<train::Batch> random_batches(const ContextPtr& context, const train::TrainSettings& s) {
  std::vector<train::Batch> batches;
  const std::int64_t count = train::num_micro_batches(s.global_batch_size, s.micro_batch_size, 1);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto seed = static_cast<std::uint64_t>(i) << 32;
    batches.push_back(
        {random_tokens(context, s, seed), random_tokens(context, s, seed + (1ull << 31))});
  }
  return batches;
}

/// Three products (forward, input gradient, weight gradient) of 2·weights·tokens each, the same for
/// the output layer, and the two products of full attention three times. The embedding look-up
/// multiplies nothing.
double matrix_flops(const train::TrainSettings& s, std::int64_t matrix_elements) {
  const auto tokens = static_cast<double>(s.global_batch_size * s.seq_length);
  const auto head_features = static_cast<double>(
      s.kv_channels.value_or(s.hidden_size / s.num_attention_heads) * s.num_attention_heads);
  const double output = s.untie_embeddings_and_output_weights
                            ? 0.0
                            : static_cast<double>(s.vocab_size * s.hidden_size);
  const double attention =
      2.0 * 2.0 * static_cast<double>(s.num_layers * s.seq_length) * head_features;
  return 3.0 * tokens * (2.0 * (static_cast<double>(matrix_elements) + output) + attention);
}

/// Elements of the weights that products use, embeddings left out.
std::int64_t product_weights(const GPTModel& model) {
  std::int64_t count = 0;
  for (const auto& [name, parameter] : model.named_parameters()) {
    if (parameter->rank() == 2 && name.find("embedding") == std::string::npos)
      count += parameter->numel();
  }
  return count;
}

class OpTimerScope {
 public:
  OpTimerScope(Context& context, OpTimer& timer) : context_(context) {
    context_.set_op_timer(&timer);
  }
  ~OpTimerScope() { context_.set_op_timer(nullptr); }
  OpTimerScope(const OpTimerScope&) = delete;
  OpTimerScope& operator=(const OpTimerScope&) = delete;

 private:
  Context& context_;
};

/// The model and its step, made once for all rounds.
class Workload {
 public:
  Workload(const train::TrainSettings& settings, const ContextPtr& context)
      : settings_(settings),
        context_(context),
        model_(train::make_model(settings, train::make_transformer_config(settings))),
        optimizer_(*model_, {}),
        step_(*model_, optimizer_),
        batches_(random_batches(context, settings)) {}

  double run_step() {
    const auto start = Clock::now();
    const train::StepResult result = step_.run(batches_, 1e-4, ++count_);
    (void)result.loss_sum.to_vector<float>();  // the loss is read, as a training loop reads it
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  void describe(TrainBenchmark& result) const {
    result.tokens_per_step = settings_.global_batch_size * settings_.seq_length;
    result.num_parameters = optimizer_.num_parameters();
    result.flops_per_step = matrix_flops(settings_, product_weights(*model_));
  }

 private:
  train::TrainSettings settings_;
  ContextPtr context_;
  std::shared_ptr<GPTModel> model_;
  train::Optimizer optimizer_;
  train::TrainingStep step_;
  std::vector<train::Batch> batches_;
  std::int64_t count_ = 0;
};

void run_peer(const TrainBenchmarkOptions& options, TrainBenchmark& result) {
  const auto count = static_cast<std::size_t>(options.warm_up_steps + options.steps);
  const std::vector<double> times = read_numbers(options.peer, options.peer_pattern, count);
  for (std::size_t i = static_cast<std::size_t>(options.warm_up_steps); i < count; ++i) {
    result.peer_step_seconds.push_back(times[i] * 1e-3);
  }
}

void check(const TrainBenchmarkOptions& options) {
  train::validate(options.settings);
  if (options.warm_up_steps < 0 || options.steps < 1 || options.rounds < 1) {
    throw ValueError(
        fmt::format("--warm-up-steps {}, --steps {}, --rounds {}: expected at least 0, 1 and 1",
                    options.warm_up_steps, options.steps, options.rounds));
  }
}

std::string rate_line(const char* who, const Timing& timing, std::int64_t tokens) {
  const auto rate = [&](double seconds) { return static_cast<double>(tokens) / seconds; };
  return fmt::format(
      "{:<11}{:.1f} tokens/s median of {} steps ({:.1f} to {:.1f}), {:.1f} ms a step\n", who,
      rate(timing.median()), timing.seconds.size(), rate(timing.slowest()), rate(timing.fastest()),
      timing.median() * 1e3);
}

double sum_of(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return sum;
}

}  // namespace

train::TrainSettings gpt2_124m_settings() {
  train::TrainSettings settings;
  settings.num_layers = 12;
  settings.hidden_size = 768;
  settings.num_attention_heads = 12;
  settings.seq_length = 64;
  settings.max_position_embeddings = 1024;
  settings.micro_batch_size = 4;
  settings.global_batch_size = 4;
  settings.vocab_size = 50257;
  settings.activation = "gelu_tanh";
  settings.precision = "fp32";
  return settings;
}

TrainBenchmark benchmark_training(const TrainBenchmarkOptions& options, const ContextPtr& context) {
  check(options);
  set_default_context(context);
  model_parallel_cuda_manual_seed(static_cast<std::uint64_t>(options.settings.seed));
  Workload workload(options.settings, context);
  TrainBenchmark result;
  workload.describe(result);
  OpTimer timer;
  for (std::int64_t round = 0; round < options.rounds; ++round) {
    for (std::int64_t i = 0; i < options.warm_up_steps; ++i) (void)workload.run_step();
    {
      const OpTimerScope timed(*context, timer);
      for (std::int64_t i = 0; i < options.steps; ++i)
        result.step_seconds.push_back(workload.run_step());
    }
    if (!options.peer.empty()) run_peer(options, result);
  }
  result.ops = timer.times();
  return result;
}

std::string to_text(const TrainBenchmark& result) {
  const Timing ours{result.step_seconds};
  std::string text = fmt::format("model      {} parameters, {} tokens a step\n",
                                 result.num_parameters, result.tokens_per_step);
  text += rate_line("kitchen", ours, result.tokens_per_step);
  if (!result.peer_step_seconds.empty()) {
    const Timing peer{result.peer_step_seconds};
    text += rate_line("peer", peer, result.tokens_per_step);
    text +=
        fmt::format("ratio      {:.2f} times the peer's tokens/s\n", peer.median() / ours.median());
  }
  text += fmt::format(
      "products   {:.1f} GFLOP/s over the whole step ({:.1f} GFLOP of products a step)\n\n",
      result.flops_per_step / ours.median() * 1e-9, result.flops_per_step * 1e-9);
  std::vector<std::pair<std::string, OpTime>> ops(result.ops.begin(), result.ops.end());
  std::sort(ops.begin(), ops.end(),
            [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  const double total = sum_of(result.step_seconds);
  double inside = 0.0;
  std::vector<std::vector<std::string>> table{{"op", "share", "ms a step", "calls a step"}};
  const auto steps = static_cast<double>(result.step_seconds.size());
  const auto add = [&](const std::string& name, double seconds, const std::string& calls) {
    table.push_back({name, fmt::format("{:5.1f} %", 100 * seconds / total),
                     fmt::format("{:8.2f}", seconds / steps * 1e3), calls});
  };
  for (const auto& [name, time] : ops) {
    inside += time.seconds;
    add(name, time.seconds, fmt::format("{:g}", static_cast<double>(time.calls) / steps));
  }
  add("outside of ops", total - inside, "-");
  return text + format_table(table);
}

std::string to_json(const TrainBenchmark& result) {
  const Timing ours{result.step_seconds};
  nlohmann::ordered_json root;
  root["num_parameters"] = result.num_parameters;
  root["tokens_per_step"] = result.tokens_per_step;
  root["tokens_per_second"] = static_cast<double>(result.tokens_per_step) / ours.median();
  root["flops_per_step"] = result.flops_per_step;
  root["step_seconds"] = result.step_seconds;
  if (!result.peer_step_seconds.empty()) {
    root["peer_step_seconds"] = result.peer_step_seconds;
    root["ratio"] = Timing{result.peer_step_seconds}.median() / ours.median();
  }
  for (const auto& [name, time] : result.ops) {
    root["ops"][name] = {{"calls", time.calls}, {"seconds", time.seconds}};
  }
  return root.dump(2) + "\n";
}

}  // namespace kitchen::analysis
