#include "kitchen/modules/quantized_operand.h"

#include "kitchen/base/error.h"
#include "kitchen/base/rank_state.h"
#include "kitchen/ops/gemm.h"
#include "kitchen/ops/grouped_gemm.h"
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

ops::QuantizedGroups codes_of(const Operands& operands) {
  ops::QuantizedGroups groups;
  for (const Operand& operand : operands) groups.push_back(*operand.quantized);
  return groups;
}

/// Rows of a group: the operand is [rows, reduction].
std::int64_t rows_of(const Operand& operand) {
  return operand.quantized ? operand.quantized->codes.dim(-2) : operand.high_precision.dim(-2);
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

void grouped_operand_gemm_into(const Operands& a, const Operands& b,
                               const std::vector<Tensor>& outs, bool accumulate,
                               const MatmulParams& matmul, const std::vector<Tensor>& biases) {
  for (std::size_t i = 0; i < a.size(); ++i) require_same_kind(a[i], b[i]);
  if (a[0].quantized) {
    ops::GroupedGemmOptions options;
    options.biases = biases;
    options.variant = variant_of(matmul);
    ops::grouped_quantized_gemm_into(codes_of(a), codes_of(b), outs, accumulate, options);
    return;
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Tensor bias = biases.empty() ? Tensor() : biases[i];
    ops::gemm_into(a[i].high_precision, b[i].high_precision, outs[i], accumulate,
                   options_of(matmul, /*quantized=*/false, 1.0f, bias));
  }
}

Tensor grouped_operand_gemm(const Operands& a, const Operands& b, DType out_dtype,
                            const MatmulParams& matmul, const std::vector<Tensor>& biases) {
  std::vector<std::int64_t> splits;
  std::int64_t rows = 0;
  for (const Operand& group : a) {
    splits.push_back(rows_of(group));
    rows += splits.back();
  }
  const ContextPtr& context = a[0].tensors()[0].context();
  const Tensor out = Tensor::empty(context, {rows, rows_of(b[0])}, out_dtype);
  grouped_operand_gemm_into(a, b, ops::split_groups(out, splits), /*accumulate=*/false, matmul,
                            biases);
  return out;
}

}  // namespace kitchen::modules
