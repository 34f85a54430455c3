/// @file   cuda/delayed_scaling/delayed_scaling.cu
/// @brief  One thread keeps the amax history of a per-tensor scale on the device.
///
/// Idea     A history has a few to a thousand entries and is read once a step: what counts is that
///          no value visits the host, so that the launch queue never waits.
/// Picture  history [h0 h1 .. hn] ─ max ─> scale;  then [0 h2 .. hn h0]
/// Needs    Dense float32.
/// Roofline A few kilobytes: the time is that of a launch.
/// Expect   Below 10 µs.
/// Measured see the contract run of tools/gpu_test (written by the run, never typed here)
/// Next     All histories of a model in one launch.

#include "kitchen/ops/delayed_scaling.h"

#include "cuda/base/launch.h"
#include "cuda/register_kernels.h"

#include <cfloat>
#include <cmath>

namespace kitchen::cuda {

namespace {

__global__ void record_amax_kernel(const float* amax, float* history) {
  if (history[0] < amax[0]) history[0] = amax[0];
}

__global__ void update_delayed_scale_kernel(float* history, std::int64_t window, float* scale,
                                            float wanted_amax, bool most_recent) {
  const float first = history[0];
  float amax = first;
  for (std::int64_t i = 1; i < window; ++i) {
    if (!most_recent && amax < history[i]) amax = history[i];
    history[i - 1] = history[i];
  }
  history[window - 1] = first;
  history[0] = 0.0f;
  if (!isfinite(amax) || !(amax > 0.0f)) return;
  const float wanted = wanted_amax / amax;
  scale[0] = wanted < FLT_MAX ? wanted : FLT_MAX;
}

void record_amax(const Stream& stream, ConstView amax, View history) {
  record_amax_kernel<<<1, 1, 0, native(stream)>>>(static_cast<const float*>(amax.data),
                                                  static_cast<float*>(history.data));
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

void update_delayed_scale(const Stream& stream, View history, View scale,
                          const ops::DelayedScaling& rule) {
  const float wanted_amax = std::ldexp(rule.largest, -static_cast<int>(rule.margin));
  update_delayed_scale_kernel<<<1, 1, 0, native(stream)>>>(
      static_cast<float*>(history.data), history.numel(), static_cast<float*>(scale.data),
      wanted_amax, rule.most_recent);
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

}  // namespace

void register_delayed_scaling_kernels(Backend& backend) {
  backend.add<ops::RecordAmaxKernel>("exact", &record_amax);
  backend.add<ops::UpdateDelayedScaleKernel>("exact", &update_delayed_scale);
}

}  // namespace kitchen::cuda
