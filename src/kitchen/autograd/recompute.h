#pragma once

#include "kitchen/base/tensor.h"

#include <functional>

namespace kitchen::autograd {

/// Captures states that forward consumes (random generators) and returns what puts them back.
using CaptureState = std::function<std::function<void()>()>;

/// Runs `fn(inputs)` without recording and keeps only the inputs; backward runs it again, recorded, with the
/// captured state put back, and differentiates that. Gradients equal those without recompute.
/// @param capture called before the first run and again around the second one; may be empty.
/// @source Training Deep Nets with Sublinear Memory Cost, arXiv:1604.06174.
Tensor recompute(const std::function<Tensor(const std::vector<Tensor>&)>& fn,
                 const std::vector<Tensor>& inputs, const CaptureState& capture = {});

}  // namespace kitchen::autograd
