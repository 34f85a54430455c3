#pragma once

#include "kitchen/ops/flash_attention.h"

#include "kitchen/base/backend.h"

namespace kitchen::reference {

/// CPU kernels of ops/flash_attention.h.
void flash_attention_forward(const Stream& stream, ConstView q, ConstView k, ConstView v, View o,
                             View lse, const ops::FlashAttentionOptions& options);
void flash_attention_backward(const Stream& stream, ConstView dout, ConstView q, ConstView k,
                              ConstView v, ConstView o, ConstView lse, View delta, View dq, View dk,
                              View dv, const ops::FlashAttentionOptions& options);

void register_flash_attention_kernels(Backend& backend);

}  // namespace kitchen::reference
