#pragma once

#include "kitchen/parallel/collective_call.h"

namespace kitchen::parallel {

/// out[i] = inputs[0][i] op inputs[1][i] op ..., in this order. bfloat16 and float16 are reduced in
/// float32 and rounded once. `avg` of integers is refused. A NaN in any input makes `max` NaN.
///
/// @param out may be one of the inputs.
/// @throws NotImplementedError naming the dtype if it is no float32, bfloat16, float16, int32,
/// int64 or uint8.
void reduce_in_rank_order(DType dtype, ReduceOp op, const std::vector<const void*>& inputs,
                          void* out, std::int64_t count);

/// Throws what reduce_in_rank_order would throw for this dtype and op.
void require_reducible(DType dtype, ReduceOp op);

}  // namespace kitchen::parallel
