#pragma once

#include "kitchen/base/tensor.h"

namespace kitchen::ops {

/// Kernel: out[local] = mean + std·normal_at(Rng{key, 0}, g) with g the row-major index of the
/// element in the global tensor; `global_offset` is where the local block starts. Computed in fp64,
/// rounded to fp32 and from there to out's dtype. Contiguous local tensor.
struct NormalInitKernel {
  static constexpr const char* kName = "normal_init";
  using Fn = void (*)(const Stream&, std::uint64_t key, double mean, double std,
                      const Shape& global_shape, const Shape& global_offset, View out);
};

/// Fills `out`, which is the block at `global_offset` of a tensor of `global_shape` (same rank):
/// the value depends on (key, global index) alone, so that every split of a weight starts equal.
/// @throws ValueError if the ranks differ or the block leaves the global tensor; TypeError on other
/// dtypes.
void normal_init(const Tensor& out, std::uint64_t key, double mean, double std,
                 const Shape& global_shape, const Shape& global_offset);

}  // namespace kitchen::ops
