#pragma once

#include "kitchen/modules/forward_interfaces.h"
#include "kitchen/modules/module.h"

namespace kitchen {

/// Drops each element with probability `p` in training and scales the rest by 1/(1 - p). Draws from the
/// default generator of the rank, or from the tracker's state inside a fork.
class Dropout : public Module, public modules::ForwardTensor {
 public:
  /// @throws ValueError unless p is in [0, 1).
  explicit Dropout(double p);

  double p;
  Tensor forward(const Tensor& x) override;
  [[nodiscard]] std::string class_name() const override { return "Dropout"; }
};

}  // namespace kitchen
