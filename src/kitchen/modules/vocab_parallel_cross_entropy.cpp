#include "kitchen/modules/vocab_parallel_cross_entropy.h"

#include "kitchen/autograd/function.h"
#include "kitchen/autograd/nn_functions.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/ops/vocab_parallel_cross_entropy.h"
#include "kitchen/parallel/process_group_collection.h"

namespace kitchen {

namespace {

using autograd::Function;
using autograd::FunctionContext;

struct VocabParallelCrossEntropy : Function<VocabParallelCrossEntropy> {
  struct Saved {
    Tensor logits;
    Tensor labels;
    Tensor lse;
    ops::VocabularyPart part;
    [[nodiscard]] std::vector<Tensor> tensors() const { return {logits, labels, lse}; }
  };
  static constexpr const char* kName = "VocabParallelCrossEntropy";

  static Tensor forward(FunctionContext<Saved>& ctx, const Tensor& logits, const Tensor& labels,
                        const ops::VocabularyPart& part, const ProcessGroup& group) {
    const Tensor packed = ops::contiguous(logits);
    const Tensor largest =
        group.all_reduce(ops::vocabulary_part_max(packed, labels, part), ReduceOp::max);
    const Tensor sums = group.all_reduce(ops::vocabulary_part_sums(packed, labels, largest, part));
    const ops::CrossEntropyResult result =
        ops::vocabulary_loss(largest, sums, labels, part.vocab_size);
    if (ctx.recording()) ctx.saved = {packed, labels, result.lse, part};
    return result.losses;
  }
  static std::vector<Tensor> backward(FunctionContext<Saved>& ctx,
                                      const std::vector<Tensor>& grads) {
    const Saved& s = ctx.saved;
    return {ops::vocabulary_part_gradient_inplace(ops::contiguous(grads[0]), s.logits, s.labels,
                                                  s.lse, s.part),
            Tensor()};
  }
};

}  // namespace

Tensor vocab_parallel_cross_entropy(const Tensor& logits, const Tensor& labels,
                                    std::int64_t vocab_size,
                                    const std::shared_ptr<ProcessGroup>& group) {
  const auto used = get_tensor_model_parallel_group_if_none(group, false);
  if (used->size() == 1) return autograd::cross_entropy(logits, labels, vocab_size);
  const std::int64_t columns = logits.dim(-1);
  if (columns * used->size() < vocab_size) {
    throw ValueError("vocab_parallel_cross_entropy: " + std::to_string(used->size()) +
                     " ranks with " + std::to_string(columns) +
                     " columns each cannot hold a vocabulary of " + std::to_string(vocab_size));
  }
  return VocabParallelCrossEntropy::apply(
      logits, labels, ops::VocabularyPart{used->rank() * columns, vocab_size}, *used);
}

}  // namespace kitchen
