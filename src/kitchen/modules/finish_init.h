#pragma once

#include "kitchen/config/quantization_config.h"

#include <optional>

namespace kitchen {

/// Second phase of construction: the model hands each layer the configuration that its recipe chose for the
/// layer's dotted path. Before it, a quantized layer has no parameters.
class FinishInit {
 public:
  virtual ~FinishInit() = default;
  virtual void finish_init(const std::optional<QuantizationConfig>& quantization_config) = 0;
};

}  // namespace kitchen
