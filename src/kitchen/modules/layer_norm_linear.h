#pragma once

#include "kitchen/modules/linear.h"
#include "kitchen/ops/norm.h"

#include <string>

namespace kitchen::modules {

struct LayerNormLinearOptions {
  LinearOptions linear;
  std::string normalization = "LayerNorm";  ///< or "RMSNorm"
  double eps = 1e-5;
  bool zero_centered_gamma = false;
};

/// "LayerNorm" or "RMSNorm". @throws ValueError naming the text.
ops::NormKind norm_kind_from_string(const std::string& normalization);

/// Normalisation followed by a linear layer, as one module. Statistics in fp32, the result in the input's
/// dtype; that result is what the linear quantizes. It is not returned.
class LayerNormLinear : public Linear {
 public:
  LayerNormLinear();

  Parameter layer_norm_weight;  ///< [in_features]; starts at 1, or 0 when zero-centred
  Parameter layer_norm_bias;    ///< [in_features]; undefined for RMSNorm

  void init(const LayerNormLinearOptions& options);
  /// @param x [..., in_features].
  LinearOutput forward(const Tensor& x, std::optional<bool> is_first_microbatch);

  [[nodiscard]] std::string class_name() const override { return "LayerNormLinear"; }

 protected:
  void allocate_parameters(const ContextPtr& context) override;

 private:
  ops::NormOptions norm_;
};

}  // namespace kitchen::modules
