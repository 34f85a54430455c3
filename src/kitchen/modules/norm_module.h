#pragma once

#include "kitchen/config/transformer_config.h"
#include "kitchen/modules/forward_interfaces.h"
#include "kitchen/modules/module.h"
#include "kitchen/modules/module_spec.h"
#include "kitchen/ops/norm.h"

namespace kitchen {

/// Normalisation over the last dimension, as the fallback providers use it.
class NormModule : public Module, public modules::ForwardTensor {
 public:
  NormModule(const TransformerConfig& config, std::int64_t hidden_size, double eps,
             ops::NormKind kind);

  Parameter weight;  ///< [hidden_size]; 1, or 0 when zero-centred
  Parameter bias;    ///< [hidden_size]; undefined for RMS

  Tensor forward(const Tensor& x) override;

 private:
  ops::NormOptions options_;
};

/// LayerNorm with weight and bias.
class LayerNormImpl : public NormModule {
 public:
  LayerNormImpl(const TransformerConfig& config, std::int64_t hidden_size, double eps)
      : NormModule(config, hidden_size, eps, ops::NormKind::layer_norm) {}
  [[nodiscard]] std::string class_name() const override { return "LayerNormImpl"; }
  static ModuleInfo module_info();
};

/// RMSNorm with a weight.
class RMSNormImpl : public NormModule {
 public:
  RMSNormImpl(const TransformerConfig& config, std::int64_t hidden_size, double eps)
      : NormModule(config, hidden_size, eps, ops::NormKind::rms_norm) {}
  [[nodiscard]] std::string class_name() const override { return "RMSNormImpl"; }
  static ModuleInfo module_info();
};

/// Returns its input: stands where a linear layer contains the norm.
class IdentityOp : public Module, public modules::ForwardTensor {
 public:
  Tensor forward(const Tensor& x) override { return x; }
  [[nodiscard]] std::string class_name() const override { return "IdentityOp"; }
  static ModuleInfo module_info();
};

}  // namespace kitchen
