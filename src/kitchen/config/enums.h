#pragma once

#include "kitchen/base/enum_names.h"

#include <string>
#include <string_view>

namespace kitchen {

/// Which keys a query may see.
enum class AttnMaskType { padding, causal, no_mask, padding_causal, arbitrary };
std::string to_string(AttnMaskType type);
template <>
AttnMaskType from_string<AttnMaskType>(std::string_view text);

/// Activation between the two linears of an MLP. gelu: exact, with erf; gelu_tanh: GPT-2's
/// approximation.
enum class ActivationFunc { gelu, gelu_tanh, silu, relu };
std::string to_string(ActivationFunc activation);
template <>
ActivationFunc from_string<ActivationFunc>(std::string_view text);

}  // namespace kitchen
