#pragma once

#include "kitchen/base/enum_names.h"

namespace kitchen {

/// Where the meaning of a recipe's number or name comes from.
enum class Evidence {
  public_source,  ///< the number and its meaning stand in a public vendor source
  inferred,       ///< the meaning follows from a public neighbour
  ours,           ///< a name of this project, without a number
  user,           ///< described by the user
};

/// "public", "inferred", "ours", "user".
std::string to_string(Evidence evidence);
template <>
Evidence from_string<Evidence>(std::string_view text);

}  // namespace kitchen
