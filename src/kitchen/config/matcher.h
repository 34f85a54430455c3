#pragma once

#include "kitchen/config/match_context.h"

#include <optional>
#include <string>

namespace kitchen {

/// One rule of a recipe: which layers it takes, and which configuration they get.
class Matcher {
 public:
  virtual ~Matcher() = default;

  /// Key in the recipe's `configs` if the layer matches, else nullopt.
  [[nodiscard]] virtual std::optional<std::string> match(const MatchContext& context) const = 0;
  [[nodiscard]] virtual std::string repr() const = 0;
};

}  // namespace kitchen
