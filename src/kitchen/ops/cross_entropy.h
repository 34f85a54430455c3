#pragma once

#include "kitchen/base/tensor.h"

namespace kitchen::ops {

inline constexpr std::int64_t kIgnoredLabel = -100;

/// Kernel: losses[t] = lse[t] - logits[t, label], lse = log Σ exp(logits) over the first
/// `vocab_size` columns, in fp32. logits [tokens, >= vocab_size] unit column stride; labels int64;
/// losses, lse float32. lse = largest + log_exact(Σ exp_exact(logit - largest)); the sum in 16
/// interleaved partial sums (column c goes to sum c mod 16), then added as a binary tree (8 apart,
/// then 4, 2, 1). A label of kIgnoredLabel gives loss 0; any other label outside of [0, vocab_size)
/// gives NaN, since a kernel cannot throw. Exact.
struct CrossEntropyForwardKernel {
  static constexpr const char* kName = "cross_entropy_forward";
  using Fn = void (*)(const Stream&, ConstView logits, ConstView labels, std::int64_t vocab_size,
                      View losses, View lse);
};

/// Kernel: dlogits[t, v] = (exp(logits - lse) - [v == label])·dlosses[t]; 0 for ignored labels
/// (also where logits are NaN) and for padding columns; NaN for labels outside of the vocabulary.
/// One rounding to dlogits' dtype. dlogits may be logits itself. Exact.
struct CrossEntropyBackwardKernel {
  static constexpr const char* kName = "cross_entropy_backward";
  using Fn = void (*)(const Stream&, ConstView dlosses, ConstView logits, ConstView labels,
                      ConstView lse, std::int64_t vocab_size, View dlogits);
};

struct CrossEntropyResult {
  Tensor losses;  ///< [tokens] float32, nats
  Tensor lse;     ///< [tokens] float32
};

/// Cross entropy of logits [tokens, >= vocab_size] with labels [tokens]; further columns are
/// padding.
/// @throws ValueError on size mismatch; TypeError if labels are not int64.
CrossEntropyResult cross_entropy_forward(const Tensor& logits, const Tensor& labels,
                                         std::int64_t vocab_size);

/// Overwrites `logits` with their gradient and returns it: no second [tokens, vocab] buffer.
Tensor cross_entropy_backward_inplace(const Tensor& dlosses, const Tensor& logits,
                                      const Tensor& labels, const Tensor& lse,
                                      std::int64_t vocab_size);

}  // namespace kitchen::ops
