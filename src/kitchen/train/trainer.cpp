#include "kitchen/train/trainer.h"

#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/base/rank_state.h"
#include "kitchen/parallel/rng_tracker.h"
#include "kitchen/train/checksum.h"
#include "kitchen/train/model_factory.h"
#include "kitchen/train/progress.h"
#include "kitchen/train/run_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <ostream>

namespace kitchen::train {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

float read_scalar(const Tensor& tensor) {
  return tensor.to_vector<float>().at(0);
}

LrSchedule make_schedule(const TrainSettings& s) {
  return LrSchedule({s.lr, s.min_lr, s.lr_warmup_iters, s.train_iters});
}

std::string checksum_of_tokens(const TokenSpan& span) {
  std::string bytes;
  for (std::int64_t i = 0; i < span.size(); ++i) bytes.push_back(static_cast<char>(span[i]));
  return kitchen::train::checksum_of(bytes);
}

TrainSettings checked(TrainSettings settings, const TrainerOutput& output) {
  if (output.out == nullptr)
    throw ValueError("Trainer: output.out is null; give a stream to report to");
  validate(settings);
  if (settings.data.empty()) {
    throw ValueError(
        "--data is missing: give a text file of at least a few hundred kilobytes. The King James "
        "text: `apt-get install bible-kjv bible-kjv-text`, then tools/quickstart writes "
        "data/kjv.txt");
  }
  if (settings.run_dir.empty())
    throw ValueError("--run-dir is missing: give a folder for the results");
  return settings;
}

void require_world(const TrainSettings& settings, const ProcessGroupCollection& groups) {
  if (groups.tp_dp_cp->size() == settings.ranks &&
      groups.tp->size() == settings.tensor_model_parallel_size) {
    return;
  }
  throw ValueError(fmt::format(
      "Trainer: the settings say {} ranks, {} of them tensor parallel; this rank's groups have {} and "
      "{}. Call initialize_model_parallel with these sizes on each rank first",
      settings.ranks, settings.tensor_model_parallel_size, groups.tp_dp_cp->size(),
      groups.tp->size()));
}

}  // namespace

/// What lives during run() only.
struct Trainer::Loop {
  std::optional<MetricsWriter> metrics;  ///< of rank 0
  Progress progress;
  Clock::time_point start = Clock::now();
  Clock::time_point interval_start = Clock::now();
  double lr = 0.0;
  double loss_sum = 0.0;
  double grad_norm = 0.0;
};

Trainer::Trainer(TrainSettings settings, ContextPtr context, const TrainerOutput& output)
    : settings_(checked(std::move(settings), output)),
      context_(std::move(context)),
      output_(output),
      groups_(ProcessGroupCollection::use_mpu_process_groups()),
      rank_(current_rank_state().rank()),
      schedule_(make_schedule(settings_)) {
  require_world(settings_, *groups_);
  const TokenSource source = TokenSource::from_text_file(settings_.data);
  source.require_vocab(settings_.vocab_size);
  data_ = source.split({settings_.micro_batch_size, settings_.seq_length, groups_->dp->size()});
  state_.data_checksum = checksum_of_tokens(source.tokens());
  config_ = make_transformer_config(settings_);
  folder_ = rank_ == 0 ? RunFolder::open(settings_.run_dir, settings_.resume)
                       : RunFolder::of_other_rank(settings_.run_dir);
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
  if (rank_ != 0) return;
  write_config_json(folder_->config_path(), to_json(settings_));
  announce();
}

Trainer::~Trainer() {
  if (context_) context_->set_op_timer(nullptr);
}

void Trainer::set_before_update(std::function<void(std::int64_t)> hook) {
  training_step_->before_update = std::move(hook);
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

void Trainer::account(const StepResult& result, Loop& loop) {
  state_.consumed_samples += settings_.global_batch_size;
  state_.consumed_tokens += result.num_tokens;
  loop.loss_sum = static_cast<double>(read_scalar(result.loss_sum));
  loop.grad_norm = static_cast<double>(read_scalar(result.clip.norm));
  state_.interval_loss += loop.loss_sum;
  state_.interval_tokens += result.num_tokens;
  if (!std::isfinite(loop.grad_norm)) ++state_.nan_iterations;
}

void Trainer::report_non_finite(const Loop& loop) const {
  const bool skipped = !std::isfinite(loop.grad_norm);
  if (settings_.check_for_nan_in_loss_and_grad && (skipped || !std::isfinite(loop.loss_sum))) {
    throw RuntimeError(
        fmt::format("step {}: the summed loss is {} and the gradient norm {}; {}. Checkpoints in "
                    "{} are of earlier "
                    "steps and good: resume from them with a lower --lr, or without "
                    "--check-for-nan-in-loss-and-grad to skip such steps",
                    step_, loop.loss_sum, loop.grad_norm,
                    skipped ? "the weights were not changed" : "the weights are not saved",
                    folder_->checkpoint_path()));
  }
  if (skipped) {
    logger().warning(
        fmt::format("step {}: the gradient norm is {}; the step is skipped ({} so far)", step_,
                    loop.grad_norm, state_.nan_iterations));
  }
}

void Trainer::log_step(const std::optional<double>& val_loss, double seconds, Loop& loop) {
  const auto tokens = static_cast<double>(state_.interval_tokens);
  const double loss = state_.interval_tokens > 0 ? state_.interval_loss / tokens : 0.0;
  const double rate = seconds > 0 ? tokens / seconds : 0.0;
  MetricsLine line;
  line.step = step_;
  line.values = {{"tokens", state_.consumed_tokens}, {"train_loss", loss}};
  if (val_loss) line.values.emplace_back("val_loss", *val_loss);
  line.values.emplace_back("lr", loop.lr);
  line.values.emplace_back("grad_norm", loop.grad_norm);
  line.values.emplace_back("nan_iterations", state_.nan_iterations);
  if (val_loss && !monitor_.empty()) {
    const ops::QuantizationStats total = monitor_.total();
    line.values.emplace_back("quantized_elements", total.num_elements);
    line.values.emplace_back("quantized_non_finite", total.num_non_finite);
    line.values.emplace_back("quantized_saturated", total.num_saturated);
    line.values.emplace_back("quantized_underflowed", total.num_underflowed);
    line.values.emplace_back("quantization", JsonText{monitor_.counts_json()});
  }
  line.times = {{"tokens_per_s", rate}, {"seconds", seconds_since(loop.start)}};
  if (loop.metrics) loop.metrics->write(line);
  if (val_loss) {
    loop.progress.message(
        fmt::format("step {:>5}  validation loss {:.4f} nats a token", step_, *val_loss));
  }
  loop.progress.update({step_, loss, loop.lr, rate, seconds_since(loop.start)});
  state_.interval_loss = 0.0;
  state_.interval_tokens = 0;
  loop.interval_start = Clock::now();
}

void Trainer::train_one_step(Loop& loop) {
  const std::int64_t num_updates = step_ - state_.nan_iterations;
  loop.lr = schedule_.at(num_updates);
  const bool is_last = step_ + 1 == settings_.train_iters;
  const bool evaluates =
      is_last || (settings_.eval_interval > 0 && (step_ + 1) % settings_.eval_interval == 0);
  StepResult result;
  {
    if (evaluates) {
      monitor_.reset();
      // A validation may have filled the caches of quantized weights, which would hide them here.
      model_->set_is_first_microbatch();
    }
    const modules::OperandObserverScope observe(evaluates ? &monitor_ : nullptr);
    result = training_step_->run(next_batches(), loop.lr, step_ + 1, num_updates + 1);
  }
  ++step_;
  account(result, loop);
  const bool is_finite = std::isfinite(loop.grad_norm) && std::isfinite(loop.loss_sum);
  const double seconds = seconds_since(loop.interval_start);  // validation is not training time
  const bool stops = !is_finite && settings_.check_for_nan_in_loss_and_grad;
  std::optional<double> val_loss;
  if (evaluates && !stops) val_loss = evaluate();
  if (evaluates || !is_finite || step_ % settings_.log_interval == 0) {
    log_step(val_loss, seconds, loop);
  }
  if (!is_finite) report_non_finite(loop);
}

RunEnd Trainer::run() {
  const std::int64_t first_step = step_;
  Progress::Options progress;
  progress.total_steps = settings_.train_iters;
  progress.first_step = first_step;
  progress.is_terminal = output_.is_terminal;
  progress.width = output_.width;
  progress.log_interval = settings_.log_interval;
  std::ostream nowhere(nullptr);
  Loop loop{std::nullopt, Progress(rank_ == 0 ? *output_.out : nowhere, progress)};
  if (rank_ == 0) {
    loop.metrics.emplace(folder_->metrics_path(),
                         settings_.resume ? std::optional<std::int64_t>(step_) : std::nullopt);
  }
  // Ranks are threads of one process, for which rank 0 listens.
  std::optional<SignalScope> signals;
  if (rank_ == 0) signals.emplace();
  std::atomic<std::int64_t> running_step{step_ +
                                         1};  // the watchdog reads it on a thread of its own
  std::optional<TerminationWatchdog> watchdog;
  if (rank_ == 0) watchdog.emplace([this, &running_step] {
    const char* op = context_->running_op();
    return fmt::format("rank {}, training step {}, {}", rank_, running_step.load(),
                       op == nullptr ? "outside of any op" : fmt::format("in op {}", op));
  });
  context_->set_op_timer(&op_timer_);
  context_->allocator()->reset_peak();
  model_->train();
  RunEnd end = RunEnd::finished;
  while (step_ < settings_.train_iters) {
    running_step = step_ + 1;
    train_one_step(loop);
    if (step_ == first_step + 2) peak_bytes_ = context_->allocator()->stats().peak_bytes;
    const StopRequest stop = agreed_stop_request();
    if (stop != StopRequest::none) {
      if (watchdog) watchdog->disarm();
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
  if (rank_ == 0) write_results();
  return end;
}

void Trainer::write_results() {
  write_run_results(*folder_, monitor_, op_timer_);
  if (is_alone() && settings_.sample_tokens > 0 && step_ == settings_.train_iters) {
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
