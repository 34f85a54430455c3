#pragma once

#include "kitchen/recipes/evidence.h"
#include "kitchen/recipes/matmul_params.h"
#include "kitchen/recipes/quantizer_params.h"

#include <cstdint>
#include <optional>
#include <string>

namespace kitchen {

/// Which autograd function a linear layer runs.
enum class AutogradFunctionImplementation {
  HIGH_PRECISION,  ///< no operand is quantized in any of the three products
  QUANTIZED,
};
std::string to_string(AutogradFunctionImplementation implementation);
template <>
AutogradFunctionImplementation from_string<AutogradFunctionImplementation>(std::string_view text);

/// Quantization of one linear layer: its three operands and its three products.
///
/// Immutable once shared by layers. fprop is x·wᵀ, dgrad is dy·w, wgrad is dyᵀ·x; each operand is
/// quantized along the reduction dimension of the product it enters (numerics.md S6).
struct QLinearParams {
  QuantizerParams x_params;  ///< activation, [tokens, in_features]
  QuantizerParams w_params;  ///< weight, [out_features, in_features]
  QuantizerParams g_params;  ///< output gradient, [tokens, out_features]
  MatmulParams mm_fprop;
  MatmulParams mm_dgrad;
  MatmulParams mm_wgrad;
  AutogradFunctionImplementation autograd_function_implementation =
      AutogradFunctionImplementation::HIGH_PRECISION;

  std::string name;                    ///< "fp8_cs"; empty for a nameless description
  std::optional<std::int64_t> number;  ///< recipe_idx, where one is publicly known
  Evidence evidence = Evidence::user;

  /// Several lines: name, operands, products.
  [[nodiscard]] std::string repr() const;
};

/// Compares what is computed: operands, products and implementation. Name, number and evidence are
/// labels.
bool operator==(const QLinearParams& a, const QLinearParams& b);
inline bool operator!=(const QLinearParams& a, const QLinearParams& b) {
  return !(a == b);
}

/// Refuses what no product can mean: two 2-D block operands in one product, stochastic rounding of
/// x or w, a Hadamard transform on x but not on dy, a quantized product of unquantized operands.
/// @throws ValueError naming the recipe, the product and the operands.
void validate_q_linear_params(const QLinearParams& params);

}  // namespace kitchen
