#include "kitchen/reference/delayed_scaling.h"

#include "kitchen/ops/delayed_scaling.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kitchen::reference {

namespace {

void record_amax(const Stream& /*stream*/, ConstView amax, View history) {
  auto* now = static_cast<float*>(history.data);
  *now = std::max(*now, *static_cast<const float*>(amax.data));
}

void update_delayed_scale(const Stream& /*stream*/, View history, View scale,
                          const ops::DelayedScaling& rule) {
  auto* first = static_cast<float*>(history.data);
  float* last = first + history.numel();
  const float amax = rule.most_recent ? *first : *std::max_element(first, last);
  std::rotate(first, first + 1, last);
  *first = 0.0f;
  if (!std::isfinite(amax) || !(amax > 0.0f)) return;
  const float wanted = std::ldexp(rule.largest, -static_cast<int>(rule.margin)) / amax;
  *static_cast<float*>(scale.data) = std::min(wanted, std::numeric_limits<float>::max());
}

}  // namespace

void register_delayed_scaling_kernels(Backend& backend) {
  backend.add<ops::RecordAmaxKernel>("exact", &record_amax);
  backend.add<ops::UpdateDelayedScaleKernel>("exact", &update_delayed_scale);
}

}  // namespace kitchen::reference
