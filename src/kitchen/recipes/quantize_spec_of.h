#pragma once

#include "kitchen/formats/quantize_spec.h"
#include "kitchen/recipes/quantizer_params.h"

namespace kitchen {

/// The scheme that `params` describe for one copy of an operand.
///
/// @param columnwise the copy for a product that reduces along the operand's rows: only there a random Hadamard
///                   transform applies (numerics.md S4).
/// @throws NotImplementedError naming the scaling where no kernel follows it; ValueError if it is `none`.
QuantizeSpec quantize_spec_of(const QuantizerParams& params, bool columnwise);

}  // namespace kitchen
