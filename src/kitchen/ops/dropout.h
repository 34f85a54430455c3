#pragma once

#include "kitchen/base/rng.h"
#include "kitchen/base/tensor.h"

namespace kitchen::ops {

/// Kernel: out[i] = keep(i) ? x[i] / (1 - p) : 0 with keep(i) = rng.uniform(i) >= p, i the
/// row-major index. A true division, no product with a reciprocal; one rounding to out's dtype; p =
/// 0 copies. Contiguous. Exact; the mask is a function of (rng, i), so backward is the same kernel
/// on dy.
struct DropoutKernel {
  static constexpr const char* kName = "dropout";
  using Fn = void (*)(const Stream&, ConstView x, float p, const Rng& rng, View out);
};

/// Kernel: out = residual + dropout(x + bias, p): x + bias is rounded to x's dtype, the dropped
/// value too, then added and rounded to out's dtype: the bits of the three separate ops. bias
/// undefined or [cols]; x, residual, out [rows, cols], contiguous. Exact.
struct BiasDropoutAddKernel {
  static constexpr const char* kName = "bias_dropout_add";
  using Fn = void (*)(const Stream&, ConstView x, ConstView bias, ConstView residual, float p,
                      const Rng& rng, View out);
};

/// x with elements dropped by probability `p`, in x's dtype and shape.
/// @param p in [0, 1). @throws ValueError outside; TypeError on other dtypes.
Tensor dropout(const Tensor& x, float p, const Rng& rng);

/// residual + dropout(x + bias, p) in the residual's dtype, for x and residual [..., cols].
/// @param bias [cols] or undefined.
/// @throws ValueError if shapes differ or p lies outside of [0, 1); TypeError on other dtypes.
Tensor bias_dropout_add(const Tensor& x, const Tensor& bias, const Tensor& residual, float p,
                        const Rng& rng);

}  // namespace kitchen::ops
