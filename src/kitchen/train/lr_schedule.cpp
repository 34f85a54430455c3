#include "kitchen/train/lr_schedule.h"

#include "kitchen/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kitchen::train {

LrSchedule::LrSchedule(const Options& options)
    : options_(options), warmup_iters_(std::min(options.warmup_iters, options.train_iters / 10)) {
  if (options.max_lr > 0 && options.min_lr > options.max_lr) {
    throw ValueError(
        fmt::format("--min-lr {} is above --lr {}, but the rate falls from --lr to --min-lr; give "
                    "--min-lr too, "
                    "such as --min-lr {}",
                    options.min_lr, options.max_lr, options.max_lr / 10));
  }
  const bool rates_fit = options.min_lr >= 0 && options.min_lr <= options.max_lr &&
                         options.max_lr > 0 && std::isfinite(options.max_lr);
  if (!rates_fit || options.warmup_iters < 0 || options.train_iters < 1) {
    throw ValueError(fmt::format(
        "learning rate: --lr {}, --min-lr {}, --lr-warmup-iters {}, --train-iters {}; expected "
        "0 <= min-lr <= lr, lr > 0, a warm-up >= 0 and at least one iteration",
        options.max_lr, options.min_lr, options.warmup_iters, options.train_iters));
  }
}

double LrSchedule::at(std::int64_t step) const {
  if (step < 0) throw ValueError(fmt::format("learning rate: step {}, expected >= 0", step));
  const auto done = static_cast<double>(step + 1);
  const auto warmup = static_cast<double>(warmup_iters_);
  if (step < warmup_iters_) return options_.max_lr * done / warmup;
  if (step + 1 >= options_.train_iters) return options_.min_lr;
  const double progress = (done - warmup) / (static_cast<double>(options_.train_iters) - warmup);
  constexpr double kPi = 3.14159265358979323846;
  return options_.min_lr +
         0.5 * (1.0 + std::cos(kPi * progress)) * (options_.max_lr - options_.min_lr);
}

}  // namespace kitchen::train
