#include "kitchen/recipes/q_linear_params.h"

#include <fmt/format.h>

#include <tuple>

namespace kitchen {

namespace {

constexpr std::array<EnumName<AutogradFunctionImplementation>, 2> kImplementations = {{
    {AutogradFunctionImplementation::HIGH_PRECISION, "HIGH_PRECISION"},
    {AutogradFunctionImplementation::QUANTIZED, "QUANTIZED"},
}};

bool is_square_block(const QuantizerParams& params) {
  return params.scaling == Scaling::block128x128 || params.scaling == Scaling::nvfp4_2d;
}

struct Operand {
  const char* name;
  const QuantizerParams& params;
};

void validate_product(const std::string& subject, const char* product, const MatmulParams& matmul,
                      const Operand& a, const Operand& b) {
  if (!matmul.quantized) return;
  for (const Operand& operand : {a, b}) {
    if (!operand.params.quantized()) {
      throw ValueError(
          fmt::format("{}: {} is quantized, but its operand {} is not (scaling none); set "
                      "{}.quantized to false "
                      "or give {} a scaling",
                      subject, product, operand.name, product, operand.name));
    }
  }
  if (is_square_block(a.params) && is_square_block(b.params)) {
    throw ValueError(
        fmt::format("{}: {} has two operands with square blocks, {} ({}) and {} ({}); one of them "
                    "must have blocks along the reduction dimension only",
                    subject, product, a.name, to_string(a.params.scaling), b.name,
                    to_string(b.params.scaling)));
  }
}

}  // namespace

std::string to_string(AutogradFunctionImplementation implementation) {
  return enum_to_string(kImplementations, implementation);
}
template <>
AutogradFunctionImplementation from_string<AutogradFunctionImplementation>(std::string_view text) {
  return enum_from_string(kImplementations, "AutogradFunctionImplementation", text);
}

std::string QLinearParams::repr() const {
  return fmt::format(
      "{}\n  x: {}\n  w: {}\n  dy: {}\n  fprop: {}\n  dgrad: {}\n  wgrad: {}\n  implementation: {}",
      name.empty() ? "QLinearParams" : name, x_params.repr(), w_params.repr(), g_params.repr(),
      mm_fprop.repr(), mm_dgrad.repr(), mm_wgrad.repr(),
      to_string(autograd_function_implementation));
}

bool operator==(const QLinearParams& a, const QLinearParams& b) {
  const auto fields = [](const QLinearParams& p) {
    return std::tie(p.x_params, p.w_params, p.g_params, p.mm_fprop, p.mm_dgrad, p.mm_wgrad,
                    p.autograd_function_implementation);
  };
  return fields(a) == fields(b);
}

void validate_q_linear_params(const QLinearParams& params) {
  const std::string subject =
      params.name.empty() ? std::string("linear recipe") : "linear recipe " + params.name;
  const Operand x{"x", params.x_params};
  const Operand w{"w", params.w_params};
  const Operand dy{"dy", params.g_params};
  for (const Operand& operand : {x, w, dy}) {
    validate_quantizer_params(operand.params, subject + ": " + operand.name);
  }
  for (const Operand& operand : {x, w}) {
    if (operand.params.stochastic) {
      throw ValueError(fmt::format("{}: stochastic rounding of {}, but only dy may be rounded so",
                                   subject, operand.name));
    }
  }
  if (x.params.rht != dy.params.rht) {
    throw ValueError(fmt::format(
        "{}: rht is {} for x and {} for dy; both must agree, since the transforms cancel in wgrad",
        subject, x.params.rht, dy.params.rht));
  }
  if (w.params.rht) {
    throw ValueError(subject + ": rht of w, but the transform is defined for x and dy only");
  }
  validate_product(subject, "fprop", params.mm_fprop, x, w);
  validate_product(subject, "dgrad", params.mm_dgrad, dy, w);
  validate_product(subject, "wgrad", params.mm_wgrad, dy, x);
}

}  // namespace kitchen
