#include "kitchen/extension/q_linear_recipe.h"

#include "kitchen/base/error.h"
#include "kitchen/base/rethrow.h"
#include "kitchen/config/config_reader.h"
#include "kitchen/extension/recipe_description.h"
#include "kitchen/recipes/predefined.h"

namespace kitchen {

namespace {

MatmulParams read_product(const ConfigDict& description, const std::string& key,
                          const std::string& subject, bool operands_quantized,
                          MatmulBackend backend) {
  MatmulParams params;
  params.quantized = operands_quantized;
  params.backend = backend;
  if (const ConfigDict* product = read_mapping(description, key)) {
    refuse_unknown_keys(*product, {"quantized", "accumulate"}, subject + ": " + key);
    params.quantized = read_bool(*product, "quantized", params.quantized);
    params.accumulate = extension::read_enum(*product, "accumulate", params.accumulate);
  }
  // Settings of an unquantized product mean nothing; one form makes equal recipes compare equal.
  return params.quantized ? params : MatmulParams{};
}

}  // namespace

QLinearParams parse_q_linear_description(const ConfigDict& description) {
  QLinearParams params;
  params.name = read_string(description, "name", "");
  const std::string subject =
      params.name.empty() ? std::string("linear recipe") : "linear recipe " + params.name;
  refuse_unknown_keys(description, {"name", "x", "w", "dy", "fprop", "dgrad", "wgrad", "backend"},
                      subject);
  params.x_params = extension::read_operand(description, "x", subject);
  params.w_params = extension::read_operand(description, "w", subject);
  params.g_params = extension::read_operand(description, "dy", subject);
  const bool x = params.x_params.quantized();
  const bool w = params.w_params.quantized();
  const bool dy = params.g_params.quantized();
  const MatmulBackend backend =
      extension::read_enum(description, "backend", MatmulBackend::automatic);
  params.mm_fprop = read_product(description, "fprop", subject, x && w, backend);
  params.mm_dgrad = read_product(description, "dgrad", subject, dy && w, backend);
  params.mm_wgrad = read_product(description, "wgrad", subject, dy && x, backend);
  const bool any =
      params.mm_fprop.quantized || params.mm_dgrad.quantized || params.mm_wgrad.quantized;
  params.autograd_function_implementation = any ? AutogradFunctionImplementation::QUANTIZED
                                                : AutogradFunctionImplementation::HIGH_PRECISION;
  try {
    validate_q_linear_params(params);
  } catch (const Error& error) {
    rethrow_with_suffix(error, in_parentheses(description.location()));
  }
  return params;
}

ConfigParts parse_q_linear_recipe(const ConfigDict& dict) {
  const ConfigValue& recipe = extension::recipe_value(dict);
  ConfigParts parts;
  if (const auto* description = recipe.get_if<ConfigDict>()) {
    parts.qlinear_params =
        std::make_shared<const QLinearParams>(parse_q_linear_description(*description));
    return parts;
  }
  try {
    parts.qlinear_params = get_qlinear_params_from_recipe_name(*recipe.get_if<std::string>());
  } catch (const Error& error) {
    rethrow_with_suffix(error, in_parentheses(recipe.location()));
  }
  return parts;
}

}  // namespace kitchen
