#pragma once

#include "kitchen/ops/flash_attention.h"

namespace kitchen::cuda {

/// CUDA entries of ops/flash_attention.h.
void flash_attention_forward(const Stream& stream, ConstView q, ConstView k, ConstView v, View o,
                             View lse, const ops::FlashAttentionOptions& options);

void flash_attention_backward(const Stream& stream, ConstView dout, ConstView q, ConstView k,
                              ConstView v, ConstView o, ConstView lse, View delta, View dq, View dk,
                              View dv, const ops::FlashAttentionOptions& options);

}  // namespace kitchen::cuda
