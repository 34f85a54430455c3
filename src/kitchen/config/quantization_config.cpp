#include "kitchen/config/quantization_config.h"

#include <utility>

namespace kitchen {

QuantizationConfig::QuantizationConfig(const ConfigDict& config_dict, MatchContext match,
                                       std::string key)
    : config(config_dict), match_input(std::move(match)), config_key(std::move(key)) {}

std::string QuantizationConfig::repr() const {
  return "QuantizationConfig(config=" + config.repr() + ", match_input=" + to_string(match_input) +
         ", config_key=\"" + config_key + "\")";
}

bool operator==(const QuantizationConfig& a, const QuantizationConfig& b) {
  return a.config == b.config && a.match_input == b.match_input && a.config_key == b.config_key;
}

}  // namespace kitchen
