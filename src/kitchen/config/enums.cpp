#include "kitchen/config/enums.h"

namespace kitchen {

namespace {

constexpr std::array<EnumName<AttnMaskType>, 5> kMaskTypes = {{
    {AttnMaskType::padding, "padding"},
    {AttnMaskType::causal, "causal"},
    {AttnMaskType::no_mask, "no_mask"},
    {AttnMaskType::padding_causal, "padding_causal"},
    {AttnMaskType::arbitrary, "arbitrary"},
}};

constexpr std::array<EnumName<ActivationFunc>, 4> kActivations = {{
    {ActivationFunc::gelu, "gelu"},
    {ActivationFunc::gelu_tanh, "gelu_tanh"},
    {ActivationFunc::silu, "silu"},
    {ActivationFunc::relu, "relu"},
}};

}  // namespace

std::string to_string(AttnMaskType type) {
  return enum_to_string(kMaskTypes, type);
}
template <>
AttnMaskType from_string<AttnMaskType>(std::string_view text) {
  return enum_from_string(kMaskTypes, "AttnMaskType", text);
}

std::string to_string(ActivationFunc activation) {
  return enum_to_string(kActivations, activation);
}
template <>
ActivationFunc from_string<ActivationFunc>(std::string_view text) {
  return enum_from_string(kActivations, "ActivationFunc", text);
}

}  // namespace kitchen
