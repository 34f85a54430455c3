#pragma once

#include <cstdint>

namespace kitchen::train {

/// Linear warm-up to `max_lr`, then half a cosine down to `min_lr` at the last step.
///
/// A function of the number of updates alone, so that a resumed run needs no state of it. A step that is
/// skipped is no update, so the rate stays for the next step, as in Megatron's scheduler.
class LrSchedule {
 public:
  struct Options {
    double max_lr = 3e-3;
    double min_lr = 3e-4;
    std::int64_t warmup_iters = 20;  ///< at most a tenth of train_iters is used
    std::int64_t train_iters = 0;
  };

  /// @throws ValueError unless 0 <= min_lr <= max_lr, max_lr > 0, warmup_iters >= 0, train_iters
  /// >= 1.
  explicit LrSchedule(const Options& options);

  /// Learning rate of the update that follows `step` others; min_lr from step train_iters - 1 on.
  /// @throws ValueError if `step` is negative.
  [[nodiscard]] double at(std::int64_t step) const;

  [[nodiscard]] std::int64_t warmup_iters() const { return warmup_iters_; }

 private:
  Options options_;
  std::int64_t warmup_iters_;
};

}  // namespace kitchen::train
