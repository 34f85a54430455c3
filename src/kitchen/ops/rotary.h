#pragma once

#include "kitchen/base/tensor.h"

namespace kitchen::ops {

/// Kernel: rotates the first `rotary_dim` of d in x [s, b, n, d] (unit stride in d): element i < r/2 pairs
/// with i + r/2; angle = position·base^(-2i/r), position = the index in dimension 0. `sign` +1 forward,
/// -1 for the gradient. fp32 inside; angles in fp64. out contiguous.
struct RotaryKernel {
  static constexpr const char* kName = "rotary";
  using Fn = void (*)(const Stream&, ConstView x, std::int64_t rotary_dim, double base, float sign,
                      View out);
};

/// Rotary position embedding, or its gradient (`inverse`). @throws ValueError unless rotary_dim is even, <= d.
/// @source RoFormer, arXiv:2104.09864; half-split pairing as in Llama.
Tensor rotary(const Tensor& x, std::int64_t rotary_dim, double base, bool inverse);

}  // namespace kitchen::ops
