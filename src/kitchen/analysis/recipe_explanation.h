#pragma once

#include "kitchen/recipes/q_attention_params.h"
#include "kitchen/recipes/q_flash_attention_params.h"
#include "kitchen/recipes/q_linear_params.h"

#include <string>

namespace kitchen::analysis {

/// "e4m3 1x128 pow2", "bf16": format, block and what differs from the usual, for a column of a
/// table.
std::string short_operand(const QuantizerParams& params);

/// Several lines for a reader: the uses of the operands, the products, storage and compute dtypes,
/// hardware.
std::string explain(const QLinearParams& params);
std::string explain(const QAttentionParams& params);
std::string explain(const QFlashAttentionParams& params);

}  // namespace kitchen::analysis
