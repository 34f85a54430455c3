#pragma once

#include "kitchen/base/math.h"
#include "kitchen/formats/codec.h"
#include "kitchen/reference/row_io.h"

#include <cstdint>

/// @file  flash_attention_numerics.h
/// @brief The rounding points in which the flash attention recipes differ.
///
/// The blocked and the exact kernels are templates over one of these structs: how rows are read,
/// how p and dS are rounded for the products that follow, which exponential p is made of.

namespace kitchen::reference {

struct E4m3Io {
  using Storage = std::uint8_t;
  static float load(std::uint8_t code) { return formats::decode(code, formats::E4M3::spec()); }
};

struct E5m2Io {
  using Storage = std::uint8_t;
  static float load(std::uint8_t code) { return formats::decode(code, formats::E5M2::spec()); }
};

/// Operands, p and dS in one dtype (S7.3).
template <class Io, bool kNatural>
struct PlainNumerics {
  using Operand = Io;
  using OutGradient = Io;
  using Output = Io;
  static constexpr bool kNaturalExp = kNatural;
  static constexpr bool kQuantized = false;

  static float round_p(float p, float /*p_scale*/) { return Io::load(Io::store(p)); }
  static float round_ds(float ds, float /*scale*/) { return Io::load(Io::store(ds)); }
};

/// q, k, v and p in E4M3, dO and dS in E5M2 (S7.4). Rounded values are those of the codes: p comes
/// out times p_scale and dS times its scale.
template <class Io, bool kNatural>
struct Fp8Numerics {
  using Operand = E4m3Io;
  using OutGradient = E5m2Io;
  using Output = Io;
  static constexpr bool kNaturalExp = kNatural;
  static constexpr bool kQuantized = true;

  static float round_p(float p, float p_scale) {
    return E4m3Io::load(
        static_cast<std::uint8_t>(formats::encode(p * p_scale, formats::E4M3::spec())));
  }
  static float round_ds(float ds, float scale) {
    return E5m2Io::load(static_cast<std::uint8_t>(
        formats::encode(Io::load(Io::store(ds)) * scale, formats::E5M2::spec())));
  }
};

/// What undoes round_p: 1 where p keeps its size.
template <class Numerics>
float p_factor(float p_scale) {
  return Numerics::kQuantized ? 1.0f / p_scale : 1.0f;
}

/// e^x or 2^x: which of them p is made of.
template <bool kNaturalExp>
float power(float x) {
  return kNaturalExp ? exp_exact(x) : exp2_exact(x);
}

/// Calls body(numerics) with the struct for an output dtype and the exponential's base.
template <template <class, bool> class Numerics, class Body>
void with_numerics(DType dtype, bool natural_exp, Body&& body) {
  with_io(dtype, [&](auto io) {
    if (natural_exp) {
      body(Numerics<decltype(io), true>{});
    } else {
      body(Numerics<decltype(io), false>{});
    }
  });
}

}  // namespace kitchen::reference
