#pragma once

#include "kitchen/base/tensor.h"

namespace kitchen::ops {

/// Kernel: rotates the first `rotary_dim` of d in x [s, b, n, d] (unit stride in d): element i <
/// r/2 pairs with i + r/2; angle = position·base^(-2i/r), position = the index in dimension 0.
/// `sign` +1 forward, -1 for the gradient. Angles, sine and cosine in fp64, rounded to fp32; (a, b)
/// -> (a·cos - b·sin, b·cos + a·sin) in fp32, one rounding; elements from rotary_dim on are copied.
/// out contiguous. Bounded: the fp64 sine of two libraries may differ in the last bit.
struct RotaryKernel {
  static constexpr const char* kName = "rotary";
  using Fn = void (*)(const Stream&, ConstView x, std::int64_t rotary_dim, double base, float sign,
                      View out);
};

/// Rotary position embedding, or its gradient (`inverse`), in x's shape and dtype.
/// @throws ValueError unless x has rank 4, rotary_dim is even and in [0, d], base > 0; TypeError on
/// dtype.
/// @source RoFormer, arXiv:2104.09864; half-split pairing as in Llama.
Tensor rotary(const Tensor& x, std::int64_t rotary_dim, double base, bool inverse);

}  // namespace kitchen::ops
