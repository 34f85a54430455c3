#pragma once

#include "kitchen/base/op_timer.h"
#include "kitchen/models/gpt_model.h"
#include "kitchen/train/batch_sampler.h"
#include "kitchen/train/checkpoint.h"
#include "kitchen/train/lr_schedule.h"
#include "kitchen/train/memory_plan.h"
#include "kitchen/train/metrics_writer.h"
#include "kitchen/train/quantization_monitor.h"
#include "kitchen/train/run_folder.h"
#include "kitchen/train/signals.h"
#include "kitchen/train/token_source.h"
#include "kitchen/train/train_settings.h"
#include "kitchen/train/training_state.h"
#include "kitchen/train/training_step.h"

#include <chrono>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>

namespace kitchen::train {

/// Where a run reports to. Only rank 0 prints.
struct TrainerOutput {
  std::ostream* out = nullptr;  ///< must not be null and must outlive the trainer
  bool is_terminal = false;     ///< a progress line that is drawn over, instead of plain lines
  int width = 80;               ///< columns of the terminal
};

/// How a run ended; the program turns it into an exit status.
enum class RunEnd { finished, exit_interval, terminated, interrupted };

/// One training run from a text file to a run folder, on one rank or several.
///
/// On several ranks each has a Trainer with the same settings; rank 0 prints and writes the folder.
/// No rank saves a checkpoint or writes samples then, and measured errors are those of rank 0's parts.
///
/// A run is a function of its settings: equal settings give equal bytes in metrics.jsonl apart from
/// times, and a run that was stopped and resumed gives the losses of one that never stopped.
class Trainer {
 public:
  /// Checks everything that can be checked before work: settings, data, recipe, run folder, and on
  /// a resume that model, data and schedule are those of the run. Several ranks have called
  /// initialize_model_parallel as rank_grid(settings) says.
  /// @throws ValueError also if this rank's world has not settings.ranks ranks.
  Trainer(TrainSettings settings, ContextPtr context, const TrainerOutput& output);
  ~Trainer();

  /// Trains until train_iters, the exit interval or a signal; saves; writes samples and report.
  /// @throws RuntimeError for a gradient that is not finite under check_for_nan_in_loss_and_grad, a
  /// full disk,
  ///         or a damaged checkpoint.
  RunEnd run();

  [[nodiscard]] GPTModel& model() { return *model_; }
  [[nodiscard]] const MemoryPlan& memory_plan() const { return plan_; }
  /// Allocator's peak over the first two steps; comparable with memory_plan().peak.
  [[nodiscard]] std::int64_t peak_bytes() const { return peak_bytes_; }
  [[nodiscard]] std::int64_t step() const { return step_; }
  /// Called after backward, before the update, with the step (from 1).
  void set_before_update(std::function<void(std::int64_t)> hook);

 private:
  struct Loop;

  void announce() const;
  [[nodiscard]] bool is_alone() const { return settings_.ranks == 1; }
  [[nodiscard]] StopRequest agreed_stop_request() const;
  void resume_from_checkpoint();
  void require_same_run(const LoadedCheckpoint& checkpoint, const TrainingState& state) const;
  void train_one_step(Loop& loop);
  void account(const StepResult& result, Loop& loop);
  void log_step(const std::optional<double>& val_loss, double seconds, Loop& loop);
  void report_non_finite(const Loop& loop) const;
  void save();
  [[nodiscard]] double evaluate();
  [[nodiscard]] std::vector<Batch> next_batches() const;
  void write_results();

  TrainSettings settings_;
  ContextPtr context_;
  TrainerOutput output_;
  TokenSplit data_;
  std::optional<RunFolder> folder_;
  MemoryPlan plan_;
  std::int64_t peak_bytes_ = 0;  ///< of the first steps, to compare with the plan
  std::shared_ptr<TransformerConfig> config_;
  std::shared_ptr<GPTModel> model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<TrainingStep> training_step_;
  std::unique_ptr<BatchSampler> sampler_;
  std::unique_ptr<ValidationSampler> validation_;
  std::shared_ptr<const ProcessGroupCollection> groups_;
  int rank_;  ///< of the thread that built the trainer; the watchdog names it on a thread of its own
  LrSchedule schedule_;
  QuantizationMonitor monitor_;
  OpTimer op_timer_;
  std::int64_t step_ = 0;
  std::int64_t saved_step_ = -1;
  TrainingState state_;
};

}  // namespace kitchen::train
