#include "kitchen/recipes/evidence.h"

namespace kitchen {

namespace {

constexpr std::array<EnumName<Evidence>, 4> kNames = {{
    {Evidence::public_source, "public"},
    {Evidence::inferred, "inferred"},
    {Evidence::ours, "ours"},
    {Evidence::user, "user"},
}};

}  // namespace

std::string to_string(Evidence evidence) {
  return enum_to_string(kNames, evidence);
}

template <>
Evidence from_string<Evidence>(std::string_view text) {
  return enum_from_string(kNames, "Evidence", text);
}

}  // namespace kitchen
