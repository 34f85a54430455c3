#pragma once

#include "kitchen/base/tensor.h"
#include "kitchen/ops/flash_attention.h"

#include <string>

namespace kitchen::modules {

/// Differentiable flash attention whose operands are cast to fp8: q, k, v to E4M3 and dO to E5M2, one
/// current scale for each batch index and head, query heads each with their own (numerics.md S7.4).
///
/// q [sq, b, np, hn], k and v [sk, b, ng, hn] -> [sq, b, np, hn]. Codes, not the operands, are kept for
/// backward. An OperandObserver sees q and k in "qk", v in "pv" and dO in "dp"; p and dS exist block by
/// block inside the kernel only.
/// @param module path of the layer, for logs and reports.
Tensor fp8_flash_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                           const ops::FlashAttentionOptions& options, const std::string& module);

}  // namespace kitchen::modules
