#pragma once

#include "kitchen/recipes/matmul_params.h"
#include "kitchen/recipes/quantizer_params.h"

#include <string>

namespace kitchen::analysis {

/// What is worth telling of one quantized operand, in words. `columnwise`: the copy for a product
/// that reduces along the operand's rows, which is the one that a Hadamard transform applies to.
struct OperandFacts {
  std::string format;    ///< "e4m3", "as computed"
  std::string block;     ///< "whole tensor", "1x128"
  std::string scale;     ///< "float32", "e8m0 (power of two, rounded up)"
  std::string rounding;  ///< "nearest even", "stochastic"
  std::string bits;      ///< bits an element with its share of the scale: "8.25"
};

OperandFacts operand_facts(const QuantizerParams& params, bool columnwise);

/// Where tensor cores multiply such operands as they are, and what happens elsewhere.
std::string native_hardware(const QuantizerParams& params, MatmulBackend backend);

}  // namespace kitchen::analysis
