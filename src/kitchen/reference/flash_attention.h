#pragma once

#include "kitchen/ops/flash_attention_fp8.h"

#include "kitchen/base/backend.h"

namespace kitchen::reference {

/// CPU kernels of ops/flash_attention.h and ops/flash_attention_fp8.h.
void flash_attention_forward(const Stream& stream, ConstView q, ConstView k, ConstView v, View o,
                             View lse, const ops::FlashAttentionOptions& options);
void flash_attention_backward(const Stream& stream, ConstView dout, ConstView q, ConstView k,
                              ConstView v, ConstView o, ConstView lse, View delta, View dq, View dk,
                              View dv, const ops::FlashAttentionOptions& options);

void flash_attention_fp8_forward(const Stream& stream, const ops::AttentionRows& q,
                                 const ops::AttentionRows& k, const ops::AttentionRows& v, View o,
                                 View lse, const ops::FlashAttentionOptions& options);
void flash_attention_fp8_backward(const Stream& stream, ConstView dout,
                                  const ops::AttentionRows& dout_codes, const ops::AttentionRows& q,
                                  const ops::AttentionRows& k, const ops::AttentionRows& v,
                                  ConstView o, ConstView lse, View delta, View dq, View dk, View dv,
                                  const ops::FlashAttentionOptions& options);

/// fp64, one query at a time.
void flash_attention_fp8_forward_exact(const Stream& stream, const ops::AttentionRows& q,
                                       const ops::AttentionRows& k, const ops::AttentionRows& v,
                                       View o, View lse, const ops::FlashAttentionOptions& options);
void flash_attention_fp8_backward_exact(const Stream& stream, ConstView dout,
                                        const ops::AttentionRows& dout_codes,
                                        const ops::AttentionRows& q, const ops::AttentionRows& k,
                                        const ops::AttentionRows& v, ConstView o, ConstView lse,
                                        View delta, View dq, View dk, View dv,
                                        const ops::FlashAttentionOptions& options);

void register_flash_attention_kernels(Backend& backend);

}  // namespace kitchen::reference
