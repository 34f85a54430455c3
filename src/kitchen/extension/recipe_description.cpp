#include "kitchen/extension/recipe_description.h"

#include "kitchen/base/error.h"
#include "kitchen/base/rethrow.h"
#include "kitchen/config/config_reader.h"
#include "kitchen/extension/config_schema_checks.h"

#include <fmt/format.h>

namespace kitchen::extension {

template <class E>
E read_enum(const ConfigDict& dict, const std::string& key, E fallback) {
  if (!dict.contains(key)) return fallback;
  const std::string text = read_string(dict, key, "");
  try {
    return from_string<E>(text);
  } catch (const ValueError& error) {
    rethrow_with_suffix(error, in_parentheses(dict.at(key).location()));
  }
}

template Scaling read_enum<Scaling>(const ConfigDict&, const std::string&, Scaling);
template BlockConvention read_enum<BlockConvention>(const ConfigDict&, const std::string&,
                                                    BlockConvention);
template MxScaleRule read_enum<MxScaleRule>(const ConfigDict&, const std::string&, MxScaleRule);
template Accumulate read_enum<Accumulate>(const ConfigDict&, const std::string&, Accumulate);
template MatmulBackend read_enum<MatmulBackend>(const ConfigDict&, const std::string&,
                                                MatmulBackend);

QuantizerParams read_operand(const ConfigDict& description, const std::string& key,
                             const std::string& subject) {
  QuantizerParams params;
  const ConfigDict* operand = read_mapping(description, key);
  if (operand == nullptr) return params;
  refuse_unknown_keys(*operand,
                      {"format", "scaling", "pow2", "eps", "convention", "mx_scale", "rht",
                       "stochastic", "window", "margin", "algorithm"},
                      subject + ": " + key);
  params.format = read_string(*operand, "format", params.format);
  params.scaling = read_enum(*operand, "scaling", params.scaling);
  params.pow2 = read_bool(*operand, "pow2", params.pow2);
  params.eps = read_number(*operand, "eps", params.eps);
  params.convention = read_enum(*operand, "convention", params.convention);
  params.mx_scale = read_enum(*operand, "mx_scale", params.mx_scale);
  params.rht = read_bool(*operand, "rht", params.rht);
  params.stochastic = read_bool(*operand, "stochastic", params.stochastic);
  params.window = read_integer(*operand, "window", params.window);
  params.margin = read_integer(*operand, "margin", params.margin);
  params.algorithm = read_string(*operand, "algorithm", params.algorithm);
  try {
    validate_quantizer_params(params, subject + ": " + key);
  } catch (const Error& error) {
    rethrow_with_suffix(error, in_parentheses(operand->location()));
  }
  return params;
}

const ConfigValue& recipe_value(const ConfigDict& dict) {
  check_schema_keys(dict, {KITCHEN_CONFIG_TYPE_KEY, "recipe"});
  const ConfigValue& value = dict.at("recipe");
  if (value.get_if<std::string>() == nullptr && value.get_if<ConfigDict>() == nullptr) {
    throw TypeError(fmt::format("recipe must be a name (string) or a description (mapping), got {}",
                                describe(value)));
  }
  return value;
}

}  // namespace kitchen::extension
