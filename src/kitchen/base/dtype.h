#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kitchen {

/// Element type of a Tensor.
///
/// `float4_e2m1` is held one code a byte (bits 0-3); the packed two-codes-a-byte form is a `uint8`
/// tensor, since a strided view cannot address half a byte.
enum class DType : std::uint8_t {
  float32,
  float16,
  bfloat16,
  float8_e4m3,
  float8_e5m2,
  float4_e2m1,
  float8_e8m0,
  int32,
  int64,
  uint8,
  boolean,
};

/// Bytes of one element in memory.
std::int64_t size_of(DType dtype);

/// PyTorch's spelling: "float32", "bfloat16", "float8_e4m3", "bool", ...
std::string to_string(DType dtype);

/// Inverse of to_string. @throws ValueError naming the text.
DType dtype_from_string(std::string_view text);

/// True for float32, float16 and bfloat16: types that arithmetic ops compute with.
bool is_high_precision(DType dtype);

}  // namespace kitchen
