#pragma once

#include "kitchen/recipes/matmul_params.h"
#include "kitchen/recipes/quantizer_params.h"

#include <string>

namespace kitchen {

/// How the operands of one batched product of unfused attention are quantized.
///
/// The dynamic type is the scheme: two quantizers of one type differ in their parameters only.
/// bmm1 multiplies Q and K, bmm2 multiplies P and V; backward multiplies the incoming gradient (dS
/// in bmm1, dO in bmm2) with the other two (numerics.md S7.1).
class AttentionQuantizer {
 public:
  virtual ~AttentionQuantizer() = default;
  AttentionQuantizer(const AttentionQuantizer&) = delete;
  AttentionQuantizer& operator=(const AttentionQuantizer&) = delete;

  /// "unquantized", "tensor" or "mx".
  [[nodiscard]] virtual std::string scheme() const = 0;

  /// Both operands of the forward product, wherever they are used.
  [[nodiscard]] const QuantizerParams& operand() const { return operand_; }
  /// The incoming gradient of the backward products.
  [[nodiscard]] const QuantizerParams& gradient() const { return gradient_; }
  /// Settings of all three products.
  [[nodiscard]] const MatmulParams& matmul() const { return matmul_; }
  [[nodiscard]] bool quantized() const { return operand_.quantized() || gradient_.quantized(); }
  /// "mx(e4m3 mx32, gradient e4m3 mx32)".
  [[nodiscard]] std::string repr() const;

 protected:
  AttentionQuantizer(QuantizerParams operand, QuantizerParams gradient, MatmulParams matmul);

 private:
  QuantizerParams operand_;
  QuantizerParams gradient_;
  MatmulParams matmul_;
};

/// Same dynamic type and same parameters.
bool operator==(const AttentionQuantizer& a, const AttentionQuantizer& b);

/// Operands stay in the compute dtype.
class UnquantizedBmm : public AttentionQuantizer {
 public:
  UnquantizedBmm();
  [[nodiscard]] std::string scheme() const override;
};

/// One fp32 scale for each [rows, columns] slice of one batch entry and head.
class TensorBmmQuantizer : public AttentionQuantizer {
 public:
  TensorBmmQuantizer(QuantizerParams operand, QuantizerParams gradient, MatmulParams matmul);
  [[nodiscard]] std::string scheme() const override;
};

/// Blocks of 32 along the reduction dimension with an E8M0 scale; they never cross a slice.
class MxBmmQuantizer : public AttentionQuantizer {
 public:
  MxBmmQuantizer(QuantizerParams operand, QuantizerParams gradient, MatmulParams matmul);
  [[nodiscard]] std::string scheme() const override;
};

}  // namespace kitchen
