#include "kitchen/modules/quantized_operand.h"

#include "kitchen/base/error.h"
#include "kitchen/base/rank_state.h"
#include "kitchen/ops/gemm.h"
#include "kitchen/ops/quantized_gemm.h"
#include "kitchen/recipes/quantize_spec_of.h"

#include <utility>

namespace kitchen::modules {

namespace {

struct InstalledObserver {
  OperandObserver* observer = nullptr;
};

OperandObserver*& installed_observer() {
  return current_rank_state().slot<InstalledObserver>().observer;
}

void require_same_kind(const Operand& a, const Operand& b) {
  if (a.quantized.has_value() == b.quantized.has_value()) return;
  throw ValueError("operand_gemm: one operand is quantized and the other is not; a product takes both or "
                   "none");
}

std::string variant_of(const MatmulParams& matmul) {
  return matmul.backend == MatmulBackend::reference ? "ref32" : "";
}

ops::GemmOptions options_of(const MatmulParams& matmul, bool quantized, float alpha,
                            const Tensor& bias) {
  ops::GemmOptions options;
  options.alpha = alpha;
  options.bias = bias;
  if (quantized) options.variant = variant_of(matmul);
  return options;
}

}  // namespace

OperandObserverScope::OperandObserverScope(OperandObserver* observer)
    : former_(std::exchange(installed_observer(), observer)) {}

OperandObserverScope::~OperandObserverScope() { installed_observer() = former_; }

void OperandCallLog::on_quantized(const OperandInfo& info, const Tensor& /*source*/,
                                  const QuantizedMatrix& /*quantized*/) {
  infos_.push_back(info);
}

std::vector<std::string> OperandCallLog::entries() const {
  std::vector<std::string> names;
  for (const OperandInfo& info : infos_) names.push_back(info.operand + "/" + info.product);
  return names;
}

std::vector<Tensor> Operand::tensors() const {
  if (!quantized) return {high_precision};
  return {quantized->codes, quantized->scale_inv, quantized->amax};
}

Operand make_operand(const Tensor& matrix, const QuantizerParams& params, const MatmulParams& matmul,
                     bool columnwise, const OperandInfo& info, const ops::QuantizeCall& call) {
  if (!matmul.quantized || !params.quantized()) return {matrix, std::nullopt};
  if (params.scaling == Scaling::tensor_delayed && !call.scale.defined()) {
    throw NotImplementedError(info.module + ": operand " + info.operand +
                              " has scaling tensor_delayed, but nothing here keeps a history of its "
                              "amax; use tensor_current");
  }
  Operand operand;
  operand.quantized = ops::quantize(matrix, quantize_spec_of(params, columnwise), call);
  if (OperandObserver* observer = installed_observer()) {
    observer->on_quantized(info, matrix, *operand.quantized);
  }
  return operand;
}

Tensor operand_gemm(const Operand& a, const Operand& b, DType out_dtype, const MatmulParams& matmul,
                    float alpha, const Tensor& bias) {
  require_same_kind(a, b);
  const ops::GemmOptions options = options_of(matmul, a.quantized.has_value(), alpha, bias);
  if (a.quantized) return ops::quantized_gemm(*a.quantized, *b.quantized, out_dtype, options);
  return ops::gemm(a.high_precision, b.high_precision, out_dtype, options);
}

void operand_gemm_accumulate(const Operand& a, const Operand& b, const Tensor& out,
                             const MatmulParams& matmul) {
  require_same_kind(a, b);
  const ops::GemmOptions options = options_of(matmul, a.quantized.has_value(), 1.0f, {});
  if (a.quantized) {
    ops::quantized_gemm_into(*a.quantized, *b.quantized, out, /*accumulate=*/true, options);
  } else {
    ops::gemm_into(a.high_precision, b.high_precision, out, /*accumulate=*/true, options);
  }
}

}  // namespace kitchen::modules
