#include "kitchen/extension/q_attention_recipe.h"

#include "kitchen/base/error.h"
#include "kitchen/base/rethrow.h"
#include "kitchen/config/config_reader.h"
#include "kitchen/extension/recipe_description.h"
#include "kitchen/recipes/predefined.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kitchen {

namespace {

constexpr const char* kSubject = "attention recipe";

struct Operands {
  QuantizerParams qk;
  QuantizerParams pv;
  QuantizerParams d_out;
  QuantizerParams d_scores;
};

Operands read_operands(const ConfigDict& description) {
  return {extension::read_operand(description, "qk", kSubject),
          extension::read_operand(description, "pv", kSubject),
          extension::read_operand(description, "do", kSubject),
          extension::read_operand(description, "ds", kSubject)};
}

std::shared_ptr<const AttentionQuantizer> make_quantizer(const QuantizerParams& operand,
                                                         const QuantizerParams& gradient,
                                                         MatmulBackend backend) {
  if (!operand.quantized() && !gradient.quantized()) {
    return std::make_shared<const UnquantizedBmm>();
  }
  const MatmulParams matmul{true, Accumulate::fp32, backend};
  const Scaling scaling = operand.quantized() ? operand.scaling : gradient.scaling;
  if (scaling == Scaling::tensor_current) {
    return std::make_shared<const TensorBmmQuantizer>(operand, gradient, matmul);
  }
  if (scaling == Scaling::mx32) {
    return std::make_shared<const MxBmmQuantizer>(operand, gradient, matmul);
  }
  throw ValueError(fmt::format(
      "{}: scaling {} is not defined for attention, expected one of: none, tensor_current, mx32",
      kSubject, to_string(scaling)));
}

std::shared_ptr<const QAttentionParams> make_unfused(const ConfigDict& description,
                                                     const Operands& operands) {
  const MatmulBackend backend =
      extension::read_enum(description, "backend", MatmulBackend::automatic);
  QAttentionParams params;
  params.name = read_string(description, "name", "");
  params.quantizer_bmm1 = make_quantizer(operands.qk, operands.d_scores, backend);
  params.quantizer_bmm2 = make_quantizer(operands.pv, operands.d_out, backend);
  return std::make_shared<const QAttentionParams>(std::move(params));
}

/// The format of a flash operand, which has one scale a head or none.
std::string flash_format(const QuantizerParams& params, const char* key) {
  if (params.scaling == Scaling::none || params.scaling == Scaling::tensor_current) {
    QuantizerParams plain;
    plain.format = params.format;
    plain.scaling = params.scaling;
    if (params == plain) return params.format;
    throw ValueError(fmt::format("{}: {} is {}, but flash attention reads format and scaling alone",
                                 kSubject, key, params.repr()));
  }
  throw ValueError(fmt::format(
      "{}: {} has scaling {}, but flash attention takes none or tensor_current (one scale a head)",
      kSubject, key, to_string(params.scaling)));
}

bool read_softmax_is_natural(const ConfigDict& description) {
  const std::string softmax = read_string(description, "softmax", "base_2");
  if (softmax == "base_2" || softmax == "natural") return softmax == "natural";
  throw ValueError(fmt::format("{}: softmax must be base_2 or natural, got {}", kSubject,
                               describe(description.at("softmax"))));
}

double read_p_scale(const ConfigDict& description, const std::string& p_format) {
  const bool is_bf16 = p_format == "bf16";
  const double scale = read_number(description, "p_scale", is_bf16 ? 1.0 : 256.0);
  int exponent = 0;
  const bool power_of_two = std::isfinite(scale) && std::frexp(scale, &exponent) == 0.5;
  const double limit = is_bf16 ? 1.0 : (p_format == "e5m2" ? 32768.0 : 256.0);
  if (power_of_two && scale >= 1.0 && scale <= limit) return scale;
  throw ValueError(
      fmt::format("{}: p_scale is {}, expected a power of two from 1 to {} for P in {}", kSubject,
                  scale, limit, p_format));
}

std::shared_ptr<const QFlashAttentionParams> make_flash(const ConfigDict& description,
                                                        const Operands& operands) {
  const std::string qk = flash_format(operands.qk, "qk");
  const std::string pv = flash_format(operands.pv, "pv");
  const std::string d_out = flash_format(operands.d_out, "do");
  const std::string d_scores = flash_format(operands.d_scores, "ds");
  QFlashAttentionParams params;
  params.backend = "kitchen";
  params.name = read_string(description, "name", "");
  params.qk_dot_precisions = qk + "@" + qk;
  params.pv_dot_precisions = pv + "@" + pv;
  params.dv_dot_precisions = pv + "@" + d_out;
  params.dp_dot_precisions = d_out + "@" + pv;
  params.dq_dot_precisions = d_scores + "@" + qk;
  params.dk_dot_precisions = d_scores + "@" + qk;
  params.use_natural_transcendental_func = read_softmax_is_natural(description);
  params.p_scale = read_p_scale(description, pv);
  return std::make_shared<const QFlashAttentionParams>(std::move(params));
}

ConfigParts parse_description(const ConfigDict& description) {
  const bool is_flash = description.contains("softmax") || description.contains("p_scale");
  std::vector<std::string> known = {"name", "qk", "pv", "do", "ds", "softmax", "p_scale"};
  if (!is_flash) known.emplace_back("backend");
  refuse_unknown_keys(description, known, kSubject);
  const Operands operands = read_operands(description);
  ConfigParts parts;
  try {
    if (is_flash) {
      parts.qfa_params = make_flash(description, operands);
    } else {
      parts.qattention_params = make_unfused(description, operands);
    }
  } catch (const ValueError& error) {
    rethrow_with_suffix(error, in_parentheses(description.location()));
  }
  return parts;
}

std::vector<std::string> flash_names() {
  std::vector<std::string> names;
  for (const auto& params : predefined_flash_recipes()) names.push_back(params->name);
  return names;
}

ConfigParts find_by_name(const std::string& name, const SourceLocation& location) {
  const std::vector<std::string> flash = flash_names();
  ConfigParts parts;
  if (std::find(flash.begin(), flash.end(), name) != flash.end()) {
    parts.qfa_params = get_qfa_params_from_recipe_name(name);
    return parts;
  }
  try {
    parts.qattention_params = get_qattention_params_from_recipe_name(name);
  } catch (const ValueError& error) {
    rethrow_with_suffix(error, fmt::format("; flash attention: {}. {}{}", join_names(flash),
                                           did_you_mean(name, flash), in_parentheses(location)));
  }
  return parts;
}

}  // namespace

ConfigParts parse_q_attention_recipe(const ConfigDict& dict) {
  const ConfigValue& recipe = extension::recipe_value(dict);
  if (const auto* description = recipe.get_if<ConfigDict>()) return parse_description(*description);
  return find_by_name(*recipe.get_if<std::string>(), recipe.location());
}

}  // namespace kitchen
