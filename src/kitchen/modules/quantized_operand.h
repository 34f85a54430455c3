#pragma once

#include "kitchen/base/tensor.h"
#include "kitchen/formats/quantized_matrix.h"
#include "kitchen/ops/quantize.h"
#include "kitchen/recipes/matmul_params.h"
#include "kitchen/recipes/quantizer_params.h"

#include <optional>
#include <string>
#include <vector>

namespace kitchen::modules {

/// Which operand of which product of which layer.
struct OperandInfo {
  std::string module;   ///< dotted path, e.g. "decoder.layers.0.mlp.linear_fc1"
  std::string operand;  ///< "x", "w", "g" in linears; "q", "k", "v", "p", "dO", "dS" in attention
  std::string product;  ///< "fprop", "dgrad", "wgrad"; "bmm1", "bmm1_dgrad_a", ... in attention
};

/// Sees each operand as it is quantized. The observed tensors must not be changed or kept.
class OperandObserver {
 public:
  virtual ~OperandObserver() = default;
  virtual void on_quantized(const OperandInfo& info, const Tensor& source,
                            const QuantizedMatrix& quantized) = 0;
};

/// Installs an observer on this rank for its lifetime; nests.
class OperandObserverScope {
 public:
  explicit OperandObserverScope(OperandObserver* observer);
  ~OperandObserverScope();
  OperandObserverScope(const OperandObserverScope&) = delete;
  OperandObserverScope& operator=(const OperandObserverScope&) = delete;

 private:
  OperandObserver* former_;
};

/// Records the operands that were quantized, in order: proves what a recipe did.
class OperandCallLog : public OperandObserver {
 public:
  void on_quantized(const OperandInfo& info, const Tensor& source,
                    const QuantizedMatrix& quantized) override;
  /// "operand/product" of each call, e.g. "x/fprop".
  [[nodiscard]] std::vector<std::string> entries() const;
  [[nodiscard]] const std::vector<OperandInfo>& infos() const { return infos_; }
  void clear() { infos_.clear(); }

 private:
  std::vector<OperandInfo> infos_;
};

/// One operand of a product d = a·bᵀ, [slices..., rows, reduction]: either quantized or as it was.
struct Operand {
  Tensor high_precision;
  std::optional<QuantizedMatrix> quantized;

  [[nodiscard]] bool defined() const { return high_precision.defined() || quantized.has_value(); }
  [[nodiscard]] std::vector<Tensor> tensors() const;
};

/// The operand of a product that reduces along the last dimension of `matrix` (any strides): codes if
/// `matmul` is a quantized product and `params` quantize, else the matrix itself.
/// @param columnwise `matrix` is the transposed view of the layer's tensor.
/// @param call what the operand's quantizer remembers (OperandQuantizer::call).
/// @throws NotImplementedError for delayed scaling without a scale in `call`.
Operand make_operand(const Tensor& matrix, const QuantizerParams& params, const MatmulParams& matmul,
                     bool columnwise, const OperandInfo& info, const ops::QuantizeCall& call = {});

/// d = alpha·a·bᵀ (+ bias) of two operands; both are quantized or none is.
/// @throws ValueError if only one is.
Tensor operand_gemm(const Operand& a, const Operand& b, DType out_dtype, const MatmulParams& matmul,
                    float alpha = 1.0f, const Tensor& bias = {});

/// As operand_gemm, added to `out`.
void operand_gemm_accumulate(const Operand& a, const Operand& b, const Tensor& out,
                             const MatmulParams& matmul);

/// One operand a group of rows; all are quantized or none is.
using Operands = std::vector<Operand>;

/// Rows of group i = a[i]·b[i]ᵀ (+ biases[i]), to the bit what operand_gemm gives for each group alone.
/// @param biases one a group, or empty.
/// @throws ValueError if one side is quantized and the other is not.
Tensor grouped_operand_gemm(const Operands& a, const Operands& b, DType out_dtype,
                            const MatmulParams& matmul, const std::vector<Tensor>& biases = {});

/// outs[i] = a[i]·b[i]ᵀ, or += with `accumulate`; a group without rows gives zeros, or adds nothing.
void grouped_operand_gemm_into(const Operands& a, const Operands& b,
                               const std::vector<Tensor>& outs, bool accumulate,
                               const MatmulParams& matmul, const std::vector<Tensor>& biases = {});

}  // namespace kitchen::modules
