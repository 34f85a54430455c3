#pragma once

#include "kitchen/base/tensor.h"

/// @file  delayed_scaling.h
/// @brief Per-tensor scales that follow from the amax of earlier steps (numerics.md S3.2). Exact.

namespace kitchen::ops {

/// How a scale follows from its history.
struct DelayedScaling {
  float largest = 448.0f;    ///< largest finite value of the format
  std::int64_t margin = 0;   ///< the scale is divided by 2^margin
  bool most_recent = false;  ///< the last amax alone instead of the largest one of the window
};

/// Kernel: history[0] = max(history[0], amax[0]); float32, history [window], amax [1].
struct RecordAmaxKernel {
  static constexpr const char* kName = "record_amax";
  using Fn = void (*)(const Stream&, ConstView amax, View history);
};

/// Kernel: the end of a step; history [window] and scale [1] in place, float32.
///
/// The history turns by one place to the left, so that the entry of this step comes last; the new
/// scale is largest·2^-margin / amax, or the former one if amax is 0 or Inf, or the largest float
/// if the quotient is Inf. history[0] is 0 afterwards: the oldest amax counts once more and is
/// lost.
struct UpdateDelayedScaleKernel {
  static constexpr const char* kName = "update_delayed_scale";
  using Fn = void (*)(const Stream&, View history, View scale, const DelayedScaling&);
};

/// Notes `amax` (float32 [1], as quantize returns it) for this step, the largest one of all calls.
/// @throws TypeError or ValueError if dtype or shape is another.
void record_amax(const Tensor& amax, const Tensor& history);

/// Ends a step: history [window] and scale [1] become those of the next one.
/// @throws TypeError or ValueError as record_amax, and for an empty history.
void update_delayed_scale(const Tensor& history, const Tensor& scale, const DelayedScaling& rule);

}  // namespace kitchen::ops
