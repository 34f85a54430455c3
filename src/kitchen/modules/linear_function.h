#pragma once

#include "kitchen/autograd/function.h"
#include "kitchen/modules/operand_quantizer.h"
#include "kitchen/modules/quantized_operand.h"
#include "kitchen/parallel/process_group.h"
#include "kitchen/recipes/q_linear_params.h"

#include <memory>
#include <optional>
#include <string>

namespace kitchen::modules {

/// Quantized copies of a weight, kept over the micro-batches of a step.
struct WeightCache {
  Operand rowwise;     ///< for fprop
  Operand columnwise;  ///< for dgrad
  std::int64_t version = -1;  ///< of the weight that was quantized
};

/// How the ranks of a group share a linear layer, and so what moves between them:
///
/// |        | sequence | forward           | backward                                    |
/// |--------|----------|-------------------|---------------------------------------------|
/// | column | whole    |                   | all-reduce of dx, beside wgrad              |
/// | column | split    | all-gather of x   | all-gather of x, reduce-scatter of dx       |
/// | row    | whole    | all-reduce of y   |                                             |
/// | row    | split    | reduce-scatter y  | all-gather of g                             |
///
/// "split": x (column) or y (row) holds this rank's part of dimension 0 only.
struct LinearSplit {
  enum class Kind { none, column, row };

  Kind kind = Kind::none;
  bool sequence_parallel = false;
  std::shared_ptr<ProcessGroup> group;  ///< of more than one rank, unless `kind` is none

  [[nodiscard]] bool is_column() const { return kind == Kind::column; }
  [[nodiscard]] bool is_row() const { return kind == Kind::row; }
};

/// What a linear layer tells its Function besides the tensors.
struct LinearCall {
  std::string module;                           ///< dotted path or class name, for messages
  std::shared_ptr<const QLinearParams> params;  ///< never null; recipe 1 quantizes nothing
  std::shared_ptr<LinearQuantizers> quantizers = std::make_shared<LinearQuantizers>();  ///< never null
  std::shared_ptr<WeightCache> cache;           ///< null: quantize the weight at each use
  bool refresh_cache = false;                   ///< first micro-batch after a weight update
  bool fuse_wgrad_accumulation = false;         ///< wgrad adds into the weight's main_grad
  LinearSplit split;
};

/// y = x·wᵀ (+ bias), and its two backward products, each with operands quantized along the dimension that
/// it reduces (numerics.md S5): fprop x and w along in_features, dgrad g and w along out_features, wgrad g and
/// x along tokens. The bias gradient is the sum of the unquantized g.
///
/// Uses that are recorded for a backward pass are training and enter the quantizers' state; a forward
/// without recording (validation, the first run of a recomputed segment) reads the state and leaves it.
///
/// Of x only what wgrad needs is kept: the columnwise codes if wgrad is quantized, else x itself; if x is
/// gathered, this rank's part of it, which backward gathers again.
///
/// On several ranks operands are quantized after they are gathered, partial sums are reduced in the output's
/// dtype, and the bias is added once, after the reduction. The gradients of a row-parallel bias are partial
/// sums under sequence parallelism.
struct LinearFunction : autograd::Function<LinearFunction> {
  struct Saved {
    Operand x_columnwise;
    Tensor x_part;  ///< defined if backward makes x_columnwise from the gathered x
    Tensor weight;
    Operand w_columnwise;  ///< undefined: make it in backward
    LinearCall call;
    Shape x_shape;  ///< after gathering
    DType x_dtype = DType::float32;
    DType bias_dtype = DType::float32;
    bool has_bias = false;
    [[nodiscard]] std::vector<Tensor> tensors() const;
  };
  static constexpr const char* kName = "Linear";

  /// @param x [..., in_features], weight [out_features, in_features], bias [out_features] or undefined.
  /// @returns [..., out_features] in x's dtype.
  /// @throws ValueError if x has no dimension besides its features and the sequence is split;
  ///         AssertionError if the sequence cannot be split evenly.
  static Tensor forward(autograd::FunctionContext<Saved>& ctx, const Tensor& x, const Tensor& weight,
                        const Tensor& bias, const LinearCall& call);
  static std::vector<Tensor> backward(autograd::FunctionContext<Saved>& ctx,
                                      const std::vector<Tensor>& grads);
};

}  // namespace kitchen::modules
