#pragma once

#include "kitchen/config/transformer_config.h"
#include "kitchen/modules/module.h"

#include <memory>

namespace kitchen {

/// A module with a transformer configuration.
class MegatronModule : public Module {
 public:
  explicit MegatronModule(std::shared_ptr<TransformerConfig> transformer_config)
      : config(std::move(transformer_config)) {}

  std::shared_ptr<TransformerConfig> config;

  /// Tells every layer below that the next forward is the first one after a weight update, so that cached
  /// quantized weights are made anew. The trainer calls it after each optimizer step.
  void set_is_first_microbatch();
};

/// Interface of the layers that cache quantized weights.
class HasFirstMicrobatch {
 public:
  virtual ~HasFirstMicrobatch() = default;
  bool is_first_microbatch = true;
};

}  // namespace kitchen
