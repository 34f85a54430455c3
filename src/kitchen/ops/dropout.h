#pragma once

#include "kitchen/base/rng.h"
#include "kitchen/base/tensor.h"

namespace kitchen::ops {

/// Kernel: out[i] = keep(i) ? x[i] / (1 - p) : 0 with keep(i) = rng.uniform(i) >= p, i the row-major index.
/// Contiguous. Exact; the mask is a function of (rng, i), so backward is the same kernel on dy.
struct DropoutKernel {
  static constexpr const char* kName = "dropout";
  using Fn = void (*)(const Stream&, ConstView x, float p, const Rng& rng, View out);
};

/// Kernel: out = residual + dropout(x + bias, p): x + bias is rounded to x's dtype, the dropped value too,
/// then added: the bits of the three separate ops. bias undefined or [cols]; [rows, cols], contiguous.
struct BiasDropoutAddKernel {
  static constexpr const char* kName = "bias_dropout_add";
  using Fn = void (*)(const Stream&, ConstView x, ConstView bias, ConstView residual, float p,
                      const Rng& rng, View out);
};

/// @param p probability to drop, in [0, 1). @throws ValueError outside.
Tensor dropout(const Tensor& x, float p, const Rng& rng);

Tensor bias_dropout_add(const Tensor& x, const Tensor& bias, const Tensor& residual, float p,
                        const Rng& rng);

}  // namespace kitchen::ops
