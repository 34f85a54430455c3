#pragma once

#include "kitchen/config/match_context.h"
#include "kitchen/config/quantization_config.h"
#include "kitchen/recipes/q_attention_params.h"
#include "kitchen/recipes/q_flash_attention_params.h"
#include "kitchen/recipes/q_linear_params.h"

#include <memory>
#include <optional>
#include <string>

namespace kitchen {

/// Quantization parameters of one layer, and how they were chosen. The order of the fields is part
/// of the contract.
struct KitchenQuantizationParams {
  std::shared_ptr<const QLinearParams> qlinear_params;        ///< null: linear layers refuse this
  MatchContext match_input;                                   ///< which layer selected this
  std::string params_config_key;                              ///< key in the recipe's `configs`
  std::shared_ptr<const QAttentionParams> qattention_params;  ///< null: unquantized attention
  std::shared_ptr<const QFlashAttentionParams> qfa_params;  ///< null: bf16 flash attention, base 2

  /// Parses the configuration that a layer got. The same parameters hold in training and in
  /// evaluation.
  ///
  /// A documented leaf type sets exactly one pointer, CompoundParams any subset. Types of the
  /// extension table (extension_config_parsers.h) are asked for before a type is refused.
  /// @throws AssertionError "Kitchen extension expects a quantization config" without a
  /// configuration,
  ///         ValueError "must have 'kitchen_config_type' key", ValueError "Unsupported config
  ///         type", and the errors of the schemas with the name of the configuration added.
  static KitchenQuantizationParams parse_from_config(
      const std::optional<QuantizationConfig>& quant_config);
};

}  // namespace kitchen
