#pragma once

#include "kitchen/modules/forward_interfaces.h"
#include "kitchen/modules/layer_norm_linear.h"
#include "kitchen/modules/module_spec.h"

namespace kitchen {

/// Norm and column-parallel linear as one unquantized module: the topology of Transformer Engine's layer.
class FusedLayerNormColumnParallelLinear : public modules::LayerNormLinear,
                                           public modules::ForwardLinear {
 public:
  explicit FusedLayerNormColumnParallelLinear(const modules::LayerNormLinearOptions& options) {
    LayerNormLinear::init(options);
  }
  std::pair<Tensor, std::optional<Tensor>> forward(const Tensor& x) override {
    return LayerNormLinear::forward(x, std::nullopt);
  }
  [[nodiscard]] std::string class_name() const override {
    return "FusedLayerNormColumnParallelLinear";
  }
  static ModuleInfo module_info();
};

}  // namespace kitchen
