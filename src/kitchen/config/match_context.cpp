#include "kitchen/config/match_context.h"

namespace kitchen {

std::string to_string(const MatchContext& context) {
  const std::string number =
      context.layer_number ? std::to_string(*context.layer_number) : std::string("none");
  return "MatchContext(module_path=\"" + context.module_path + "\", layer_number=" + number + ")";
}

}  // namespace kitchen
