#include "kitchen/train/trainer.h"

#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/parallel/rng_tracker.h"
#include "kitchen/train/batch_sizes.h"
#include "kitchen/train/checkpoint.h"
#include "kitchen/train/checksum.h"
#include "kitchen/train/model_factory.h"
#include "kitchen/train/progress.h"
#include "kitchen/train/run_results.h"
#include "kitchen/train/signals.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <ostream>

namespace kitchen::train {

namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

float read_scalar(const Tensor& tensor) { return tensor.to_vector<float>().at(0); }

LrSchedule make_schedule(const TrainSettings& s) {
  return LrSchedule({s.lr, s.min_lr, s.lr_warmup_iters, s.train_iters});
}

std::string checksum_of_tokens(const TokenSpan& span) {
  std::string bytes;
  for (std::int64_t i = 0; i < span.size(); ++i) bytes.push_back(static_cast<char>(span[i]));
  return kitchen::train::checksum_of(bytes);
}

TrainSettings checked(TrainSettings settings) {
  validate(settings);
  if (settings.data.empty()) {
    throw ValueError(
        "--data is missing: give a text file of at least a few hundred kilobytes. The King James "
        "text: `apt-get install bible-kjv bible-kjv-text`, then tools/quickstart writes data/kjv.txt");
  }
  if (settings.run_dir.empty()) throw ValueError("--run-dir is missing: give a folder for the results");
  return settings;
}

Json rng_to_json(const GeneratorState& state) { return Json::array({state.seed, state.offset}); }

GeneratorState rng_from_json(const Json& json) {
  return {json.at(0).get<std::uint64_t>(), json.at(1).get<std::uint64_t>()};
}

}  // namespace

/// What lives during run() only.
struct Trainer::Loop {
  MetricsWriter metrics;
  Progress progress;
  Clock::time_point start = Clock::now();
  Clock::time_point interval_start = Clock::now();
  double interval_loss = 0.0;
  std::int64_t interval_tokens = 0;
  double grad_norm = 0.0;
};

Trainer::Trainer(TrainSettings settings, ContextPtr context, const TrainerOutput& output)
    : settings_(checked(std::move(settings))),
      context_(std::move(context)),
      output_(output),
      schedule_(make_schedule(settings_)) {
  const TokenSource source = TokenSource::from_text_file(settings_.data);
  source.require_vocab(settings_.vocab_size);
  data_ = source.split({settings_.micro_batch_size, settings_.seq_length, 1});
  data_checksum_ = checksum_of_tokens(source.tokens());
  config_ = make_transformer_config(settings_);
  folder_ = RunFolder::open(settings_.run_dir, settings_.resume);
  plan_ = plan_memory(settings_, context_);

  set_default_context(context_);
  model_parallel_cuda_manual_seed(static_cast<std::uint64_t>(settings_.seed));
  model_ = make_model(settings_, config_);
  optimizer_ = std::make_unique<Optimizer>(
      *model_, Optimizer::Options{settings_.adam_beta1, settings_.adam_beta2, settings_.adam_eps,
                                  settings_.weight_decay, settings_.clip_grad});
  training_step_ = std::make_unique<TrainingStep>(*model_, *optimizer_);
  sampler_ = std::make_unique<BatchSampler>(data_.train, settings_.seq_length,
                                            static_cast<std::uint64_t>(settings_.seed));
  validation_ = std::make_unique<ValidationSampler>(data_.validation, settings_.seq_length);
  if (settings_.resume) resume_from_checkpoint();
  write_config_json(folder_->config_path(), to_json(settings_));
  announce();
}

Trainer::~Trainer() {
  if (context_) context_->set_op_timer(nullptr);
}

void Trainer::set_before_update(std::function<void(std::int64_t)> hook) {
  training_step_->before_update = std::move(hook);
}

void Trainer::announce() const {
  std::ostream& out = *output_.out;
  out << fmt::format("model      {} layers, hidden {}, {} heads, sequence {}: {} parameters in {}\n",
                     settings_.num_layers, settings_.hidden_size, settings_.num_attention_heads,
                     settings_.seq_length, optimizer_->num_parameters(), settings_.precision);
  out << fmt::format("recipe     {}\n", recipe_label(settings_));
  out << fmt::format("data       {}\n", data_.description);
  out << fmt::format("step       {} sequences of {} tokens, {} steps, seed {}\n",
                     settings_.global_batch_size, settings_.seq_length, settings_.train_iters,
                     settings_.seed);
  out << fmt::format("device     {}\n", to_string(context_->device()));
  out << fmt::format("memory     {}\n", to_string(plan_));
  if (step_ > 0) out << fmt::format("resumed    at step {}\n", step_);
  out.flush();
}

std::string Trainer::training_state() const {
  Json state;
  state["consumed_samples"] = consumed_samples_;
  state["consumed_tokens"] = consumed_tokens_;
  state["nan_iterations"] = nan_iterations_;
  state["data_checksum"] = data_checksum_;
  state["rng"]["default"] = rng_to_json(default_generator());
  for (const auto& [name, rng] : get_cuda_rng_tracker().get_states()) {
    state["rng"]["tracker"][name] = rng_to_json(rng);
  }
  return state.dump();
}

void Trainer::restore_training_state(const std::string& json) {
  const Json state = Json::parse(json);
  if (state.at("data_checksum").get<std::string>() != data_checksum_) {
    throw ValueError("--resume: " + settings_.data +
                     " is not the text that this run was trained on; give the same file by --data");
  }
  consumed_samples_ = state.at("consumed_samples").get<std::int64_t>();
  consumed_tokens_ = state.at("consumed_tokens").get<std::int64_t>();
  nan_iterations_ = state.at("nan_iterations").get<std::int64_t>();
  default_generator() = rng_from_json(state.at("rng").at("default"));
  std::map<std::string, GeneratorState> states;
  for (const auto& [name, rng] : state.at("rng").at("tracker").items()) {
    states[name] = rng_from_json(rng);
  }
  get_cuda_rng_tracker().set_states(std::move(states));
}

void Trainer::resume_from_checkpoint() {
  const std::optional<LoadedCheckpoint> checkpoint = open_latest_checkpoint(folder_->checkpoint_path());
  if (!checkpoint) {
    throw ValueError(folder_->checkpoint_path() +
                     ": holds no checkpoint to resume from; start anew in another --run-dir");
  }
  if (checkpoint->config()) {
    TrainSettings saved;
    update_from_json(saved, *checkpoint->config());
    const std::vector<std::string> differences = resume_differences(saved, settings_);
    std::string text;
    for (const std::string& line : differences) text += "\n  " + line;
    if (!text.empty()) {
      throw ValueError("--resume: the run was started with other settings:" + text +
                       "\nResume with the same ones, or start a new run in another --run-dir");
    }
  }
  const std::string recipe = recipe_text(*config_);
  if (checkpoint->recipe_or(recipe) != recipe) {
    throw ValueError("--resume: the recipe has changed since the run was started; use the same file, or "
                     "start a new run in another --run-dir");
  }
  checkpoint->load_into({optimizer_->parameters(), optimizer_->state()});
  optimizer_->mark_updated();
  model_->set_is_first_microbatch();
  step_ = checkpoint->step();
  saved_step_ = step_;
  restore_training_state(checkpoint->training_state());
}

void Trainer::save() {
  if (saved_step_ == step_) return;
  std::vector<Tensor> weights;
  for (const NamedTensor& parameter : optimizer_->parameters()) weights.push_back(parameter.tensor);
  if (!std::isfinite(read_scalar(ops::sum_squares(weights)))) {
    throw RuntimeError(fmt::format(
        "step {}: the weights are not finite, so no checkpoint was written; the last good one stays in "
        "{}", step_, folder_->checkpoint_path()));
  }
  CheckpointState state;
  state.step = step_;
  state.training_state = training_state();
  state.recipe = recipe_text(*config_);
  state.config = to_json(settings_);
  save_checkpoint(folder_->checkpoint_path(), {optimizer_->parameters(), optimizer_->state()}, state,
                  static_cast<int>(settings_.keep_checkpoints));
  saved_step_ = step_;
}

double Trainer::evaluate() {
  model_->eval();
  double sum = 0.0;
  std::int64_t tokens = 0;
  const std::int64_t batches = std::min<std::int64_t>(
      settings_.eval_iters,
      std::max<std::int64_t>(1, validation_->num_samples() / settings_.micro_batch_size));
  for (std::int64_t i = 0; i < batches; ++i) {
    const Batch batch = validation_->batch(context_, i * settings_.micro_batch_size,
                                           {settings_.micro_batch_size, 0, 0, 1});
    sum += static_cast<double>(read_scalar(evaluate_loss_sum(*model_, batch)));
    tokens += count_tokens(batch.labels);
  }
  model_->train();
  return sum / static_cast<double>(std::max<std::int64_t>(tokens, 1));
}

std::vector<Batch> Trainer::next_batches() const {
  std::vector<Batch> batches;
  const std::int64_t count =
      num_micro_batches(settings_.global_batch_size, settings_.micro_batch_size, 1);
  for (std::int64_t i = 0; i < count; ++i) {
    batches.push_back(
        sampler_->batch(context_, consumed_samples_, {settings_.micro_batch_size, i, 0, 1}));
  }
  return batches;
}

void Trainer::account(const StepResult& result, double lr, Loop& loop) {
  consumed_samples_ += settings_.global_batch_size;
  consumed_tokens_ += result.num_tokens;
  loop.interval_loss += static_cast<double>(read_scalar(result.loss_sum));
  loop.interval_tokens += result.num_tokens;
  loop.grad_norm = static_cast<double>(read_scalar(result.clip.norm));
  if (std::isfinite(loop.grad_norm)) return;
  ++nan_iterations_;
  log_step(lr, std::nullopt, loop);
  if (settings_.check_for_nan_in_loss_and_grad) {
    throw RuntimeError(fmt::format(
        "step {}: the gradient norm is {}; the weights were not changed. The last checkpoint in {} is "
        "good; look for the layer with non-finite values in quantization.json",
        step_, loop.grad_norm, folder_->checkpoint_path()));
  }
  logger().warning(fmt::format("step {}: the gradient norm is {}; the step is skipped ({} so far)", step_,
                               loop.grad_norm, nan_iterations_));
}

void Trainer::log_step(double lr, std::optional<double> val_loss, Loop& loop) {
  if (loop.interval_tokens == 0 && !val_loss) return;
  const double seconds = seconds_since(loop.interval_start);
  const auto tokens = static_cast<double>(loop.interval_tokens);
  const double loss = loop.interval_tokens > 0 ? loop.interval_loss / tokens : 0.0;
  MetricsLine line;
  line.step = step_;
  line.values = {{"tokens", consumed_tokens_}, {"train_loss", loss}};
  if (val_loss) line.values.emplace_back("val_loss", *val_loss);
  line.values.emplace_back("lr", lr);
  line.values.emplace_back("grad_norm", loop.grad_norm);
  line.values.emplace_back("nan_iterations", nan_iterations_);
  line.times = {{"tokens_per_s", seconds > 0 ? tokens / seconds : 0.0},
                {"seconds", seconds_since(loop.start)}};
  loop.metrics.write(line);
  if (val_loss) {
    loop.progress.message(fmt::format("step {:>5}  validation loss {:.4f} nats a token", step_, *val_loss));
  }
  loop.progress.update({step_, loss, lr, seconds > 0 ? tokens / seconds : 0.0, seconds_since(loop.start)});
  loop.interval_loss = 0.0;
  loop.interval_tokens = 0;
  loop.interval_start = Clock::now();
}

void Trainer::train_one_step(Loop& loop) {
  const double lr = schedule_.at(step_);
  const bool is_last = step_ + 1 == settings_.train_iters;
  const bool evaluates =
      is_last || (settings_.eval_interval > 0 && (step_ + 1) % settings_.eval_interval == 0);
  StepResult result;
  {
    if (evaluates) monitor_.reset();
    const modules::OperandObserverScope observe(evaluates ? &monitor_ : nullptr);
    result = training_step_->run(next_batches(), lr, step_ + 1);
  }
  ++step_;
  account(result, lr, loop);
  const bool logs = step_ % settings_.log_interval == 0;
  if (evaluates) {
    log_step(lr, evaluate(), loop);
    loop.interval_start = Clock::now();  // validation is not training time
  } else if (logs) {
    log_step(lr, std::nullopt, loop);
  }
}

RunEnd Trainer::run() {
  const std::int64_t first_step = step_;
  Progress::Options progress;
  progress.total_steps = settings_.train_iters;
  progress.first_step = first_step;
  progress.is_terminal = output_.is_terminal;
  progress.width = output_.width;
  progress.log_interval = settings_.log_interval;
  Loop loop{MetricsWriter(folder_->metrics_path(),
                          settings_.resume ? std::optional<std::int64_t>(step_) : std::nullopt),
            Progress(*output_.out, progress)};
  const SignalScope signals;
  TerminationWatchdog watchdog([this] { return fmt::format("rank 0, training step {}", step_ + 1); });
  context_->set_op_timer(&op_timer_);
  context_->allocator()->reset_peak();
  model_->train();
  RunEnd end = RunEnd::finished;
  while (step_ < settings_.train_iters) {
    train_one_step(loop);
    if (step_ == first_step + 2) peak_bytes_ = context_->allocator()->stats().peak_bytes;
    const StopRequest stop = stop_request();
    if (stop != StopRequest::none) {
      watchdog.disarm();
      end = stop == StopRequest::terminate ? RunEnd::terminated : RunEnd::interrupted;
      break;
    }
    if (settings_.exit_interval && step_ % *settings_.exit_interval == 0 &&
        step_ < settings_.train_iters) {
      end = RunEnd::exit_interval;
      break;
    }
    if (settings_.save_interval && step_ % *settings_.save_interval == 0) save();
  }
  context_->set_op_timer(nullptr);
  loop.progress.finish();
  save();
  write_results();
  return end;
}

void Trainer::write_results() {
  write_run_results(*folder_, monitor_, op_timer_);
  if (settings_.sample_tokens > 0 && step_ == settings_.train_iters) {
    write_samples(*model_, data_.validation, settings_, folder_->samples_path());
  }
  write_run_report(*folder_);
  std::ostream& out = *output_.out;
  if (peak_bytes_ > 0) {
    out << fmt::format("memory     peak {}, planned {}\n", format_mebibytes(peak_bytes_),
                       format_mebibytes(plan_.peak));
  }
  out << fmt::format("results    {}\n", folder_->path());
  out.flush();
}

}  // namespace kitchen::train
