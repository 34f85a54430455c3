#include "kitchen/recipes/attention_quantizer.h"

#include <fmt/format.h>

#include <typeinfo>
#include <utility>

namespace kitchen {

namespace {

/// An operand of a scheme is quantized by its scaling, rounded to nearest, or left alone.
void require_scaling(const char* scheme, const char* operand, const QuantizerParams& params,
                     Scaling scaling) {
  validate_quantizer_params(params, fmt::format("{} attention quantizer: {}", scheme, operand));
  if (params.rht || params.stochastic) {
    throw ValueError(
        fmt::format("{} attention quantizer: {} has {}, which is defined for linear layers only",
                    scheme, operand, params.rht ? "rht" : "stochastic rounding"));
  }
  if (params.scaling == scaling || params.scaling == Scaling::none) return;
  throw ValueError(fmt::format("{} attention quantizer: {} has scaling {}, expected {} or none",
                               scheme, operand, to_string(params.scaling), to_string(scaling)));
}

}  // namespace

AttentionQuantizer::AttentionQuantizer(QuantizerParams operand, QuantizerParams gradient,
                                       MatmulParams matmul)
    : operand_(std::move(operand)), gradient_(std::move(gradient)), matmul_(matmul) {}

std::string AttentionQuantizer::repr() const {
  if (!quantized()) return scheme();
  return scheme() + "(" + operand_.repr() + ", gradient " + gradient_.repr() + ")";
}

bool operator==(const AttentionQuantizer& a, const AttentionQuantizer& b) {
  return typeid(a) == typeid(b) && a.operand() == b.operand() && a.gradient() == b.gradient() &&
         a.matmul() == b.matmul();
}

UnquantizedBmm::UnquantizedBmm() : AttentionQuantizer({}, {}, {}) {}

std::string UnquantizedBmm::scheme() const {
  return "unquantized";
}

TensorBmmQuantizer::TensorBmmQuantizer(QuantizerParams operand, QuantizerParams gradient,
                                       MatmulParams matmul)
    : AttentionQuantizer(std::move(operand), std::move(gradient), matmul) {
  require_scaling("tensor", "operand", this->operand(), Scaling::tensor_current);
  require_scaling("tensor", "gradient", this->gradient(), Scaling::tensor_current);
}

std::string TensorBmmQuantizer::scheme() const {
  return "tensor";
}

MxBmmQuantizer::MxBmmQuantizer(QuantizerParams operand, QuantizerParams gradient,
                               MatmulParams matmul)
    : AttentionQuantizer(std::move(operand), std::move(gradient), matmul) {
  require_scaling("mx", "operand", this->operand(), Scaling::mx32);
  require_scaling("mx", "gradient", this->gradient(), Scaling::mx32);
}

std::string MxBmmQuantizer::scheme() const {
  return "mx";
}

}  // namespace kitchen
