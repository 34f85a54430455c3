#pragma once

#include "kitchen/base/rng.h"
#include "kitchen/ops/activation.h"
#include "kitchen/ops/flash_attention.h"
#include "kitchen/ops/norm.h"
#include "kitchen/ops/softmax.h"

/// @file  nn_functions.h
/// @brief Differentiable forms of the operations that layers are made of. Contracts: kitchen/ops.

namespace kitchen::autograd {

/// Layer or RMS normalisation over the last dimension. Keeps x and the row statistics.
Tensor norm(const Tensor& x, const Tensor& gamma, const Tensor& beta,
            const ops::NormOptions& options);

/// act(x + bias), gated or not; bias may be undefined. Keeps x, not the sum.
Tensor bias_activation(const Tensor& x, const Tensor& bias, const ops::ActivationOptions& options);

/// Masked softmax over the last dimension of scores [b, np, sq, sk]. Keeps the probabilities and the mask.
Tensor softmax(const Tensor& scores, const Tensor& mask, const ops::SoftmaxOptions& options);

/// x with each element kept with probability 1 - p and scaled by 1/(1 - p). Keeps no mask: backward draws it
/// again from `rng`.
Tensor dropout(const Tensor& x, float p, const Rng& rng);

/// residual + dropout(x + bias, p); bias may be undefined.
Tensor bias_dropout_add(const Tensor& x, const Tensor& bias, const Tensor& residual, float p,
                        const Rng& rng);

/// Rows of `table` picked by `ids`. The table's gradient is summed in float32.
Tensor embedding(const Tensor& ids, const Tensor& table, std::int64_t first_id = 0);

/// Cross entropy per token, float32 [tokens], of logits [tokens, >= vocab_size]. Backward overwrites the
/// logits with their gradient, so they must not be used afterwards.
Tensor cross_entropy(const Tensor& logits, const Tensor& labels, std::int64_t vocab_size);

/// Flash attention; keeps q, k, v, the output and its log-sum-exp.
Tensor flash_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                       const ops::FlashAttentionOptions& options);

/// Rotary position embedding of x [s, b, n, d].
Tensor rotary(const Tensor& x, std::int64_t rotary_dim, double base);

}  // namespace kitchen::autograd
