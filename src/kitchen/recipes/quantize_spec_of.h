#pragma once

#include "kitchen/formats/quantize_spec.h"
#include "kitchen/recipes/quantizer_params.h"

namespace kitchen {

/// The scheme that `params` describe for one copy of an operand.
///
/// @param columnwise the copy for a product that reduces along the operand's rows: only there a random Hadamard
///                   transform applies (numerics.md S4).
/// Delayed scaling is a per-tensor scheme whose scale the caller brings.
/// @throws ValueError if the scaling is `none`.
QuantizeSpec quantize_spec_of(const QuantizerParams& params, bool columnwise);

}  // namespace kitchen
