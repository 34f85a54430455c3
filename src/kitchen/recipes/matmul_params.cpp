#include "kitchen/recipes/matmul_params.h"

namespace kitchen {

namespace {

constexpr std::array<EnumName<Accumulate>, 3> kAccumulates = {{
    {Accumulate::fast, "fast"},
    {Accumulate::promoted, "promoted"},
    {Accumulate::fp32, "fp32"},
}};

constexpr std::array<EnumName<MatmulBackend>, 4> kBackends = {{
    {MatmulBackend::automatic, "auto"},
    {MatmulBackend::native, "native"},
    {MatmulBackend::emulation, "emulation"},
    {MatmulBackend::reference, "reference"},
}};

}  // namespace

std::string to_string(Accumulate accumulate) {
  return enum_to_string(kAccumulates, accumulate);
}
template <>
Accumulate from_string<Accumulate>(std::string_view text) {
  return enum_from_string(kAccumulates, "accumulate", text);
}

std::string to_string(MatmulBackend backend) {
  return enum_to_string(kBackends, backend);
}
template <>
MatmulBackend from_string<MatmulBackend>(std::string_view text) {
  return enum_from_string(kBackends, "backend", text);
}

std::string MatmulParams::repr() const {
  if (!quantized) return "unquantized";
  return "quantized " + to_string(accumulate) + " " + to_string(backend);
}

}  // namespace kitchen
