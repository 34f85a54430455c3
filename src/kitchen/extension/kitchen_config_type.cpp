#include "kitchen/extension/kitchen_config_type.h"

namespace kitchen {

namespace {

constexpr std::array<EnumName<KitchenConfigType>, 4> kNames = {{
    {KitchenConfigType::QLINEAR_PARAMS, "QLinearParams"},
    {KitchenConfigType::QATTENTION_PARAMS, "QAttentionParams"},
    {KitchenConfigType::QFLASHATTENTION_PARAMS, "QFlashAttentionParams"},
    {KitchenConfigType::COMPOUND_PARAMS, "CompoundParams"},
}};

}  // namespace

std::string to_string(KitchenConfigType type) {
  return enum_to_string(kNames, type);
}

template <>
KitchenConfigType from_string<KitchenConfigType>(std::string_view text) {
  return enum_from_string(kNames, "KitchenConfigType", text);
}

}  // namespace kitchen
