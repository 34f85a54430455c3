#pragma once

#include "kitchen/config/config_value.h"
#include "kitchen/config/match_context.h"

#include <string>

namespace kitchen {

/// The part of a recipe that one layer got: a deep copy of the dictionary, and how it was found.
class QuantizationConfig {
 public:
  QuantizationConfig(const ConfigDict& config, MatchContext match_input, std::string config_key);

  ConfigDict config;         ///< own copy: changing it reaches neither another layer nor the recipe
  MatchContext match_input;  ///< the layer that asked
  std::string config_key;    ///< key in the recipe's `configs`

  [[nodiscard]] std::string repr() const;
};

bool operator==(const QuantizationConfig& a, const QuantizationConfig& b);
inline bool operator!=(const QuantizationConfig& a, const QuantizationConfig& b) {
  return !(a == b);
}

}  // namespace kitchen
