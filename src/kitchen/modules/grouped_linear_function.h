#pragma once

#include "kitchen/modules/linear_function.h"

#include <vector>

namespace kitchen::modules {

/// What a grouped linear layer tells its Function besides the tensors.
struct GroupedLinearCall {
  std::vector<LinearCall>
      experts;  ///< one a group, never empty; recipe and split are common to all
  std::vector<std::int64_t> splits;  ///< rows of each group, in order
};

/// LinearFunction for groups of rows, each with a weight and a bias of its own: what an expert gets
/// and gives equals, to the bit, what LinearFunction does with its rows alone. Each expert is
/// quantized on its own. A group without rows has zero gradients.
///
/// With a split over ranks (LinearSplit) the sequence is whole: rows sorted by expert are no
/// sequence.
struct GroupedLinearFunction : autograd::Function<GroupedLinearFunction> {
  struct Saved {
    Operands x_columnwise;
    std::vector<Tensor> weights;
    Operands w_columnwise;  ///< each undefined: make it in backward
    GroupedLinearCall call;
    DType x_dtype = DType::float32;
    std::vector<DType> bias_dtypes;  ///< empty without biases
    [[nodiscard]] std::vector<Tensor> tensors() const;
  };
  static constexpr const char* kName = "GroupedLinear";

  /// @param x [rows, in_features], rows sorted by expert.
  /// @param weights [out_features, in_features] each; biases [out_features] each, or empty.
  /// @returns [rows, out_features] in x's dtype.
  /// @throws ValueError if x is no such matrix, or if the splits are negative or do not sum to its
  /// rows.
  static Tensor forward(autograd::FunctionContext<Saved>& ctx, const Tensor& x,
                        const std::vector<Tensor>& weights, const std::vector<Tensor>& biases,
                        const GroupedLinearCall& call);
  static std::vector<Tensor> backward(autograd::FunctionContext<Saved>& ctx,
                                      const std::vector<Tensor>& grads);
};

}  // namespace kitchen::modules
