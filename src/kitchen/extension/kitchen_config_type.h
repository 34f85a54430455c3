#pragma once

#include "kitchen/base/enum_names.h"

#include <string>
#include <string_view>

namespace kitchen {

/// Key under which a configuration tells its type.
inline constexpr const char* KITCHEN_CONFIG_TYPE_KEY = "kitchen_config_type";

/// The layers are always there; kept for code that asks.
inline constexpr bool HAVE_KITCHEN = true;

/// Object types in a recipe's configurations.
enum class KitchenConfigType {
  QLINEAR_PARAMS,
  QATTENTION_PARAMS,
  QFLASHATTENTION_PARAMS,
  COMPOUND_PARAMS
};

/// "QLinearParams", "QAttentionParams", "QFlashAttentionParams", "CompoundParams".
std::string to_string(KitchenConfigType type);

/// Exact and case-sensitive. @throws ValueError naming the text.
template <>
KitchenConfigType from_string<KitchenConfigType>(std::string_view text);

}  // namespace kitchen
