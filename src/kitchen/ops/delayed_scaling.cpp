#include "kitchen/ops/delayed_scaling.h"

#include "kitchen/base/error.h"
#include "kitchen/ops/operand_checks.h"

namespace kitchen::ops {

namespace {

void require_history(const char* op, const Tensor& history) {
  require_dtype(op, "history", history, DType::float32);
  require_contiguous(op, "history", history);
  if (history.rank() == 1 && history.numel() > 0) return;
  throw ValueError(std::string(op) + ": history has shape " + to_string(history.shape()) +
                   ", expected [window] with a window of at least 1 step");
}

}  // namespace

void record_amax(const Tensor& amax, const Tensor& history) {
  const ContextPtr& context = common_context("record_amax", {&amax, &history});
  require_history("record_amax", history);
  require_dtype("record_amax", "amax", amax, DType::float32);
  require_shape("record_amax", "amax", amax, {1});
  context->launch<RecordAmaxKernel>({}, amax.const_view(), history.kernel_view());
}

void update_delayed_scale(const Tensor& history, const Tensor& scale, const DelayedScaling& rule) {
  const ContextPtr& context = common_context("update_delayed_scale", {&history, &scale});
  require_history("update_delayed_scale", history);
  require_dtype("update_delayed_scale", "scale", scale, DType::float32);
  require_shape("update_delayed_scale", "scale", scale, {1});
  context->launch<UpdateDelayedScaleKernel>({}, history.kernel_view(), scale.kernel_view(), rule);
}

}  // namespace kitchen::ops
