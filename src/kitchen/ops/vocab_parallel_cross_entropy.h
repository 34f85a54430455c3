#pragma once

#include "kitchen/ops/cross_entropy.h"

/// @file  vocab_parallel_cross_entropy.h
/// @brief The parts of a cross entropy whose logits [tokens, vocabulary] are cut by columns over
/// ranks. Between them the caller reduces over the ranks: the largest logits by maximum, the sums
/// by sum.

namespace kitchen::ops {

/// Which ids the columns of this rank's logits are.
struct VocabularyPart {
  std::int64_t first_id = 0;    ///< id of column 0
  std::int64_t vocab_size = 0;  ///< of the whole vocabulary; columns of later ids are padding

  /// How many of `columns` columns are no padding.
  [[nodiscard]] std::int64_t valid(std::int64_t columns) const;
};

/// Kernel: largest[t] (float32) = the largest of the first `valid` logits of row t, -inf if there
/// is none. Logits as in CrossEntropyForwardKernel. Exact.
struct VocabularyPartMaxKernel {
  static constexpr const char* kName = "vocabulary_part_max";
  using Fn = void (*)(const Stream&, ConstView logits, std::int64_t valid, View largest);
};

/// Kernel: sums [2, tokens] float32. sums[0, t] = Σ exp_exact(logit - largest[t]) over the valid
/// columns, in the order of CrossEntropyForwardKernel; sums[1, t] = the label's logit if its column
/// is here, else 0. Exact.
struct VocabularyPartSumsKernel {
  static constexpr const char* kName = "vocabulary_part_sums";
  using Fn = void (*)(const Stream&, ConstView logits, ConstView labels, ConstView largest,
                      const VocabularyPart& part, View sums);
};

/// Kernel: lse = largest + log_exact(sums[0]), losses = lse - sums[1], from values of the whole
/// vocabulary; ignored and unknown labels as in CrossEntropyForwardKernel. Exact.
struct VocabularyLossKernel {
  static constexpr const char* kName = "vocabulary_loss";
  using Fn = void (*)(const Stream&, ConstView largest, ConstView sums, ConstView labels,
                      std::int64_t vocab_size, View losses, View lse);
};

/// Kernel: CrossEntropyBackwardKernel for the columns of this rank, lse being that of the whole
/// vocabulary. Exact.
struct VocabularyPartGradientKernel {
  static constexpr const char* kName = "vocabulary_part_gradient";
  using Fn = void (*)(const Stream&, ConstView dlosses, ConstView logits, ConstView labels,
                      ConstView lse, const VocabularyPart& part, View dlogits);
};

/// [tokens] float32. @throws as cross_entropy_forward.
Tensor vocabulary_part_max(const Tensor& logits, const Tensor& labels, const VocabularyPart& part);

/// [2, tokens] float32. @param largest of the whole vocabulary.
Tensor vocabulary_part_sums(const Tensor& logits, const Tensor& labels, const Tensor& largest,
                            const VocabularyPart& part);

/// Losses and lse from `largest` and `sums` of the whole vocabulary.
CrossEntropyResult vocabulary_loss(const Tensor& largest, const Tensor& sums, const Tensor& labels,
                                   std::int64_t vocab_size);

/// Overwrites `logits` with their gradient and returns it.
Tensor vocabulary_part_gradient_inplace(const Tensor& dlosses, const Tensor& logits,
                                        const Tensor& labels, const Tensor& lse,
                                        const VocabularyPart& part);

}  // namespace kitchen::ops
