#include "kitchen/modules/dropout.h"

#include "kitchen/autograd/nn_functions.h"
#include "kitchen/base/error.h"
#include "kitchen/parallel/rng_tracker.h"

namespace kitchen {

Dropout::Dropout(double probability) : p(probability) {
  if (!(p >= 0.0 && p < 1.0)) {
    throw ValueError("Dropout: p is " + std::to_string(p) + ", expected a probability in [0, 1)");
  }
}

Tensor Dropout::forward(const Tensor& x) {
  if (!training || p == 0.0) return x;
  return autograd::dropout(x, static_cast<float>(p), next_rng());
}

}  // namespace kitchen
