#pragma once

#include "kitchen/base/tensor.h"

namespace kitchen::ops {

enum class NormKind { layer_norm, rms_norm };

struct NormOptions {
  NormKind kind = NormKind::layer_norm;
  float eps = 1e-5f;
  bool zero_centered_gamma = false;  ///< y = x̂·(1 + gamma) + beta
};

/// Kernel: statistics and arithmetic in fp32, one rounding to y's dtype. x, y [rows, cols], unit
/// column stride, any row stride; gamma, beta [cols] of any high-precision dtype; mean, rstd [rows]
/// float32 (mean unused for rms_norm). Row sums: 8 interleaved fp32 partial sums (column c goes to
/// sum c mod 8), then sum i + sum i+4, i+2, i+1. mean = Σx / cols (0 for rms_norm), rstd = 1 /
/// sqrt(Σ(x-mean)² / cols + eps), y = (x-mean)·rstd·g + beta with g = gamma or 1 + gamma, each
/// operation rounded. Exact.
struct NormForwardKernel {
  static constexpr const char* kName = "norm_forward";
  using Fn = void (*)(const Stream&, ConstView x, ConstView gamma, ConstView beta, View y,
                      View mean, View rstd, const NormOptions&);
};

/// Kernel: dx in dy's dtype, dgamma and dbeta [cols] float32, summed over rows in ascending chunks
/// of 128 rows (as SumRowsKernel). `workspace` holds 2·ceil(rows/128)·cols floats. dbeta is
/// undefined for rms_norm. x̂ = (x-mean)·rstd, w = dy·g, a = Σ w·x̂ / cols, b = Σ w / cols (0 for
/// rms_norm), row sums as above; dx = (w - (x̂·a + b))·rstd. Exact.
struct NormBackwardKernel {
  static constexpr const char* kName = "norm_backward";
  using Fn = void (*)(const Stream&, ConstView dy, ConstView x, ConstView gamma, ConstView mean,
                      ConstView rstd, View dx, View dgamma, View dbeta, void* workspace,
                      const NormOptions&);
};

struct NormResult {
  Tensor y;     ///< as x
  Tensor mean;  ///< [rows] float32; undefined for rms_norm
  Tensor rstd;  ///< [rows] float32
};

struct NormGradients {
  Tensor dx;
  Tensor dgamma;  ///< [cols] float32
  Tensor dbeta;   ///< [cols] float32; undefined for rms_norm
};

/// Layer or RMS normalisation over the last dimension of x [..., cols], any strides (rows that
/// cannot be walked with one stride are copied first). A NaN stays in its row.
/// @param beta [cols]; required for layer_norm, undefined for rms_norm.
/// @throws ValueError on size mismatch or cols = 0; TypeError on a dtype that is not high
/// precision.
/// @source Layer Normalization, arXiv:1607.06450; Root Mean Square Layer Normalization,
/// arXiv:1910.07467.
NormResult norm_forward(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                        const NormOptions& options);

/// @param dy shape of x, any high-precision dtype, which dx takes. No rows give zero dgamma and
/// dbeta.
/// @param mean,rstd what norm_forward returned; mean undefined for rms_norm.
NormGradients norm_backward(const Tensor& dy, const Tensor& x, const Tensor& gamma,
                            const Tensor& mean, const Tensor& rstd, const NormOptions& options);

}  // namespace kitchen::ops
